package faults

import (
	"os"
	"testing"

	"mobula"
	"mobula/e2e/harness"
)

// The list of jobs has every job that has not ended, with its driver and its counts, in the order of their numbers.
func TestJobsAreListed(t *testing.T) {
	ctx, cancel := harness.Limit(t)
	defer cancel()
	p := harness.MustLaunch(t, harness.NodeConfig{Dir: harness.TempDir(t), CPUs: 2, Store: 16 << 20, StoreDir: harness.TempDir(t)})
	_, first := harness.Connect(t, ctx, p)
	c, second := harness.Connect(t, ctx, p)
	if v, err := harness.Add.Go(first, mobula.V(1.0), mobula.V(2.0)).Get(first); err != nil || v != 3 {
		t.Fatalf("%v, %v", v, err)
	}
	a, err := harness.CounterType.Spawn(second, mobula.V(1))
	harness.Must(t, err)
	if v, err := harness.CounterInc.Go(second, a, mobula.V(1)).Get(second); err != nil || v != 2 {
		t.Fatalf("an actor beside them: %v, %v", v, err)
	}
	page, err := c.ListJobs(second, mobula.Query{})
	harness.Must(t, err)
	if page.Total != 2 || len(page.Rows) != 2 || page.Rows[0].ID != "2" || page.Rows[1].ID != "1" {
		t.Fatalf("%+v", page)
	}
	if j := page.Rows[1]; j.PID != os.Getpid() || j.Submitted != 1 || j.Finished != 1 || j.Namespace != "default" {
		t.Errorf("%+v", j)
	}
	page, err = c.ListJobs(second, mobula.Query{Filters: []mobula.Filter{{Field: "submitted", Value: "1"}}})
	harness.Must(t, err)
	if page.Total != 1 || page.Rows[0].ID != "1" {
		t.Errorf("with a filter: %+v", page)
	}
}
