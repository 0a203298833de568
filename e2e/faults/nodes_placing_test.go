package faults

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"mobula"
	"mobula/actors"
	"mobula/e2e/harness"
	"mobula/internal/node"
	"mobula/internal/testkit"
)

// onNode takes its time, and gives the id of the node where it ran.
var onNode = mobula.Register1("e2e/onNode", func(ctx context.Context, ms int) (string, error) {
	select {
	case <-time.After(time.Duration(ms) * time.Millisecond):
	case <-ctx.Done():
		return "", ctx.Err()
	}
	rc, err := mobula.GetRuntimeContext(ctx)
	return rc.NodeID, err
})

// waitFor takes so many milliseconds, and gives zero.
var waitFor = mobula.Register1("e2e/waitFor", func(ctx context.Context, ms int) (int, error) {
	select {
	case <-time.After(time.Duration(ms) * time.Millisecond):
		return 0, nil
	case <-ctx.Done():
		return 0, ctx.Err()
	}
})

// nodeAndSize gives the id of the node where it ran, and how long its argument is.
var nodeAndSize = mobula.Register1("e2e/nodeAndSize", func(ctx context.Context, b []byte) (string, error) {
	rc, err := mobula.GetRuntimeContext(ctx)
	return fmt.Sprintf("%s %d", rc.NodeID, len(b)), err
})

// nodeAndSizes is the same of several arguments.
var nodeAndSizes = mobula.RegisterVar0("e2e/nodeAndSizes", func(ctx context.Context, bs [][]byte) (string, error) {
	rc, err := mobula.GetRuntimeContext(ctx)
	n := 0
	for _, b := range bs {
		n += len(b)
	}
	return fmt.Sprintf("%s %d", rc.NodeID, n), err
})

// makeBytes makes so many bytes where it runs.
var makeBytes = mobula.Register1("e2e/makeBytes", func(_ context.Context, n int) ([]byte, error) { return make([]byte, n), nil })

// meet waits until the first node has heard of all others: a task that only one of them may run waits for that.
func meet(ctx context.Context, t *testing.T, nodes []*node.Node) {
	t.Helper()
	for i := range nodes {
		id := fmt.Sprint(i + 1)
		if at, err := onNode.Go(ctx, mobula.V(0), mobula.OnNode(id)).Get(ctx); err != nil || at != id {
			t.Fatalf("a task for node %s ran on %q, %v", id, at, err)
		}
	}
}

// zones gives each node a label: "a", "b", "c".
func zones(i int, cfg *node.Config) {
	cfg.Labels = map[string]string{"zone": string(rune('a' + i))}
}

// Each option of a task has it run where it says, though the driver's node has room.
func TestOptionsChooseTheNode(t *testing.T) {
	nodes := harness.StartNodesWith(t, zones, 4, 4, 4)
	ctx, _ := harness.ConnectTo(t, nodes[0])
	meet(ctx, t, nodes)
	for name, c := range map[string]struct {
		opts []mobula.TaskOption
		want []string
	}{
		"OnNode":                 {[]mobula.TaskOption{mobula.OnNode("2")}, []string{"2"}},
		"PreferNode":             {[]mobula.TaskOption{mobula.PreferNode("3")}, []string{"3"}},
		"PreferNode, it is gone": {[]mobula.TaskOption{mobula.PreferNode("77")}, []string{"1", "2", "3"}},
		"Labels":                 {[]mobula.TaskOption{mobula.Labels{"zone": "c"}}, []string{"3"}},
		"Labels, but one":        {[]mobula.TaskOption{mobula.Labels{"zone": "!in(a, c)"}}, []string{"2"}},
		"PreferLabels":           {[]mobula.TaskOption{mobula.PreferLabels{"zone": "b"}}, []string{"2"}},
		"PreferLabels, no such":  {[]mobula.TaskOption{mobula.PreferLabels{"zone": "z"}}, []string{"1", "2", "3"}},
	} {
		for range 3 {
			if at, err := onNode.Go(ctx, mobula.V(0), c.opts...).Get(ctx); err != nil || !slices.Contains(c.want, at) {
				t.Errorf("%s: it ran on node %q, %v; want one of %v", name, at, err, c.want)
			}
		}
	}
}

// Tasks that are to be spread run on every node, though the driver's node has room for all of them.
func TestSpreadTasksRunOnEveryNode(t *testing.T) {
	nodes := harness.StartNodes(t, 6, 6, 6)
	ctx, _ := harness.ConnectTo(t, nodes[0])
	meet(ctx, t, nodes)
	var refs []mobula.Ref[string]
	for range 6 {
		refs = append(refs, onNode.Go(ctx, mobula.V(1500), mobula.Spread()))
	}
	at, err := mobula.GetAll(ctx, refs)
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(at)
	if ran := slices.Compact(at); len(ran) != 3 {
		t.Errorf("they ran on the nodes %v", ran)
	}
}

// Short tasks that are to be spread do not all run where a worker is up already: each node that has room gets its share. Those that come one at a time go round.
func TestShortSpreadTasksRunOnEveryNode(t *testing.T) {
	const tasks = 300
	nodes := harness.StartNodes(t, 2, 1, 1)
	ctx, _ := harness.ConnectTo(t, nodes[0])
	heardOf(ctx, t, nodes)
	testkit.Eventually(t, "each node gets its share", func() bool { // of a node that has said a while ago that it is busy there is none
		gate := waitFor.Go(ctx, mobula.V(100), mobula.OnNode("1")) // a worker is up here, at first none elsewhere; all tasks are ready at once
		refs := make([]mobula.Ref[string], tasks)
		for i := range refs {
			refs[i] = onNode.Go(ctx, gate, mobula.Spread())
		}
		all, err := mobula.GetAll(ctx, refs)
		if err != nil {
			t.Fatal(err)
		}
		ran := map[string]int{}
		for _, at := range all {
			ran[at]++
		}
		t.Logf("so many ran on each node: %v", ran)
		return ran["1"] >= tasks/10 && ran["2"] >= tasks/10 && ran["3"] >= tasks/10
	})
	testkit.Eventually(t, "tasks that come one at a time go round", func() bool { // once the nodes have said that nothing waits there any more
		var round []string
		for range 6 {
			at, err := onNode.Go(ctx, mobula.V(0), mobula.Spread()).Get(ctx)
			if err != nil {
				t.Fatal(err)
			}
			round = append(round, at)
		}
		return slices.Equal(round[:3], round[3:]) && round[0] != round[1] && round[1] != round[2] && round[0] != round[2]
	})
}

// heardOf waits until the first node has heard what all others have, without a task there, which would start a worker: what no node can run says how many were asked.
func heardOf(ctx context.Context, t *testing.T, nodes []*node.Node) {
	t.Helper()
	want := fmt.Sprintf("of %d nodes", len(nodes))
	testkit.Eventually(t, want, func() bool {
		_, err := onNode.Go(ctx, mobula.V(0), mobula.Resources{CPU: 64}).Get(ctx)
		return err != nil && strings.Contains(err.Error(), want)
	})
}

// What no node can run fails, with an error that names the shape and what the nodes lack.
func TestWhatNoNodeCanRunIsNamed(t *testing.T) {
	nodes := harness.StartNodesWith(t, zones, 1, 2)
	ctx, _ := harness.ConnectTo(t, nodes[0])
	for want, opts := range map[string][]mobula.TaskOption{
		"CPU 64: no node can run it: of 2 nodes 2 with too little CPU, at most 2":          {mobula.Resources{CPU: 64}},
		"on nodes where zone in (z): no node can run it: of 2 nodes 2 without the labels":  {mobula.Labels{"zone": "in(z)"}},
		"on node 77: no node can run it: of 2 nodes 2 not asked for":                       {mobula.OnNode("77")},
		"CPU 2, on node n1: no node can run it: of 2 nodes 1 not asked for; 1 with too li": {mobula.OnNode("1"), mobula.Resources{CPU: 2}},
	} {
		_, err := onNode.Go(ctx, mobula.V(0), opts...).Get(ctx)
		if !errors.Is(err, mobula.ErrUnschedulable) || !strings.Contains(err.Error(), want) {
			t.Errorf("the error is %v\nwant %s", err, want)
		}
	}
}

// A task runs where its argument is, not where it would have to be moved to. Tasks that ask for different amounts share no leases: one that idles elsewhere would
// be used. The nodes have room for leases that idle.
func TestATaskRunsWhereItsArgumentIs(t *testing.T) {
	nodes := harness.StartNodes(t, 16, 16, 16)
	ctx, _ := harness.ConnectTo(t, nodes[0])
	meet(ctx, t, nodes)
	for id, cpu := range map[string]float64{"3": 1, "2": 0.5} {
		big, small := makeBytes.Go(ctx, mobula.V(16<<20), mobula.OnNode(id)), makeBytes.Go(ctx, mobula.V(1<<20), mobula.OnNode("1"))
		for range 3 {
			if got, err := nodeAndSize.Go(ctx, big, mobula.Resources{CPU: cpu}).Get(ctx); err != nil || got != id+" 16777216" {
				t.Errorf("the argument is on node %s, and it gives %q, %v", id, got, err)
			}
			if got, err := nodeAndSizes.Go(ctx, []mobula.Ref[[]byte]{small, big}, mobula.Resources{CPU: cpu}).Get(ctx); err != nil || got != id+" 17825792" {
				t.Errorf("the larger argument is on node %s, and it gives %q, %v", id, got, err)
			}
		}
	}
}

// Tasks share leases: a thousand of them on three nodes of two CPUs need few.
func TestManyTasksNeedFewLeases(t *testing.T) {
	nodes := harness.StartNodes(t, 2, 2, 2)
	ctx, _ := harness.ConnectTo(t, nodes[0])
	meet(ctx, t, nodes)
	var refs []mobula.Ref[string]
	for range 1000 {
		refs = append(refs, onNode.Go(ctx, mobula.V(1)))
	}
	at, err := mobula.GetAll(ctx, refs)
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(at)
	if ran := slices.Compact(at); len(ran) != 3 {
		t.Errorf("tasks ran on the nodes %v", ran)
	}
	all, err := nodes[0].OwnerStats(ctx)
	if err != nil || len(all) != 1 {
		t.Fatalf("%d owners, %v", len(all), err)
	}
	if s := all[0]; s.Finished != 1003 || s.LeasesGranted >= 20 {
		t.Errorf("%d tasks have run over %d leases", s.Finished, s.LeasesGranted)
	}
}

// What chooses nodes panics again and again while tasks run on both, and nothing of that is seen.
func TestTheChoiceOfNodesIsRebuilt(t *testing.T) {
	faults := &actors.Faults{}
	nodes := harness.StartNodesWith(t, func(i int, cfg *node.Config) {
		if i == 0 {
			cfg.Faults = faults
		}
	}, 1, 1)
	ctx, _ := harness.ConnectTo(t, nodes[0])
	for round := range 3 {
		var refs []mobula.Ref[string]
		for range 8 {
			refs = append(refs, onNode.Go(ctx, mobula.V(50)))
		}
		faults.Inject(actors.Fault{Kind: "cluster", MessageType: "cluster.FromScheduler", Nth: 1 + round, Action: actors.PanicMidStep})
		if _, err := mobula.GetAll(ctx, refs); err != nil {
			t.Fatal(err)
		}
	}
	if n := nodes[0].Restarts()["cluster"]; n == 0 {
		t.Error("the component was never built again")
	}
}
