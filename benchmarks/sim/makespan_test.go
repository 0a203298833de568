package main

import (
	"os"
	"testing"
)

// mostOfIdeal is what a job may take, beside the ideal.
const mostOfIdeal = 1.2

// A job takes little longer than with a scheduler that knows every slot at once and moves nothing. The tasks of a slot are as few here as on 10,000 nodes of a
// million tasks, or fewer: what begins and ends a job weighs the most then.
func TestAJobTakesLittleLongerThanTheIdeal(t *testing.T) {
	sizes := []struct{ nodes, tasks int }{{100, 10_000}, {1000, 100_000}}
	if os.Getenv("MOBULA_STRESS") != "" {
		sizes = append(sizes, []struct{ nodes, tasks int }{{1000, 1_000_000}, {10_000, 1_000_000}}...)
	}
	for _, size := range sizes {
		cfg := defaults()
		cfg.Nodes, cfg.Tasks = size.nodes, size.tasks
		r, err := Run(cfg)
		if err != nil {
			t.Fatal(err)
		}
		of := ratio(r.Makespan, r.Greedy)
		t.Logf("%d tasks on %d nodes: %v, %.3f of the ideal, in %v", cfg.Tasks, cfg.Nodes, r.Makespan, of, r.Real)
		if of > mostOfIdeal {
			t.Errorf("%d tasks on %d nodes take %v, %.3f of the ideal, which takes %v", cfg.Tasks, cfg.Nodes, r.Makespan, of, r.Greedy)
		}
	}
}
