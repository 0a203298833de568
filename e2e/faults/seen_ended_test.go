package faults

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"mobula"
	"mobula/e2e/harness"
	"mobula/internal/state"
)

// Whichever node is asked, it tells why a task waits, by the schedulers of all nodes, and ends tasks and actors of any job.
func TestAnyNodeExplainsAndEndsTheWorkOfAll(t *testing.T) {
	nodes := harness.StartNodes(t, 1, 1, 1)
	ctx, c := harness.ConnectTo(t, nodes[0])
	long := int(time.Hour / time.Millisecond)
	runs := saidThere.Go(ctx, mobula.V(long), mobula.OnNode("2"))
	known := func(ref mobula.Ref[string]) {
		t.Helper()
		if _, err := c.Explain(ctx, ref.ID()); err != nil { // behind what this program has submitted
			t.Fatal(err)
		}
	}
	known(runs)
	harness.Eventually(t, ctx, "the task runs there", func() bool {
		ex := asTool[state.Explanation](t, ctx, nodes[2], state.MethodExplain, state.ExplainRequest{ID: taskOf(runs.ID())})
		return ex.State == "RUNNING" && strings.Contains(ex.Summary, "on node n2")
	})
	waits := saidThere.Go(ctx, mobula.V(0), mobula.OnNode("2"))
	known(waits)
	harness.Eventually(t, ctx, "the task waits there", func() bool {
		ex := asTool[state.Explanation](t, ctx, nodes[2], state.MethodExplain, state.ExplainRequest{ID: taskOf(waits.ID())})
		return slices.ContainsFunc(ex.Details, func(d string) bool {
			return strings.HasPrefix(d, "scheduler of node n2: ") && strings.Contains(d, "asks 1 CPU, 0 of 1 free")
		})
	})
	done := asTool[state.Cancelling](t, ctx, nodes[2], state.MethodCancel, state.CancelRequest{ID: runs.ID()})
	if done.Was != "RUNNING" {
		t.Errorf("cancelled was %+v", done)
	}
	if _, err := runs.Get(ctx); !errors.Is(err, mobula.ErrCancelled) {
		t.Errorf("the task gave %v", err)
	}
	if _, err := waits.Get(ctx); err != nil {
		t.Errorf("what waited behind it gave %v", err)
	}

	a, err := harness.CounterType.Spawn(ctx, mobula.V(1))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := harness.CounterInc.Go(ctx, a, mobula.V(1)).Get(ctx); err != nil {
		t.Fatal(err)
	}
	killed := asTool[state.Killed](t, ctx, nodes[2], state.MethodKill, state.KillRequest{Actor: a.ID()})
	if killed.Was != "ALIVE" || killed.State != "DEAD" {
		t.Errorf("killed is %+v", killed)
	}
	if _, err := harness.CounterInc.Go(ctx, a, mobula.V(1)).Get(ctx); !errors.Is(err, mobula.ErrActorDied) {
		t.Errorf("its next call gave %v", err)
	}
}

// taskOf is the id of the task that makes an object.
func taskOf(object string) string {
	task, _, _ := strings.Cut(object, ":")
	return task
}
