package faults

import (
	"context"
	"math/rand/v2"
	"testing"

	"mobula"
	"mobula/actors"
	"mobula/e2e/harness"
	"mobula/internal/client"
	"mobula/internal/node"
	"mobula/internal/testkit"
)

// Every component of the tree panics in the middle of a step, at a random message, while
// thousands of tasks run and the live objects are four times the store.
func TestEveryComponentCrashes(t *testing.T) {
	const each = 1 << 20
	store := harness.Size(16, 256) << 20
	for _, mode := range []string{"embedded", "process"} {
		t.Run(mode, func(t *testing.T) {
			seed, r := testkit.Seed(t), testkit.Rand(t)
			ctx, cancel := harness.Limit(t)
			defer cancel()
			faults := &actors.Faults{}
			spill := []string{harness.TempDir(t), harness.TempDir(t)} // two spillers
			n, ctx := harness.StartNode(t, ctx, node.Config{CPUs: 2, StoreBytes: uint64(store), SpillURLs: spill, Faults: faults, Processes: mode == "process"})
			l := newLoad(t, ctx, 4*store, each)
			stop := make(chan struct{})
			wg := l.run(seed, harness.Size(2000, 10_000), stop)
			want := crashAll(t, ctx, n, faults, r)
			close(stop)
			wg.Wait()
			l.check()
			crashMembers(t, ctx, n, faults)
			for path, crashes := range want {
				if got := restarts(n, path); got != crashes {
					t.Errorf("%s crashed %d times and was restarted %d times", path, crashes, got)
				}
			}
			t.Logf("%d tasks, %d components crashed", l.tasks.Load(), len(want))
		})
	}
}

// atEnd are the kinds of component that step only when a client comes or leaves, and how often each is to crash at the same event.
var atEnd = map[string]int{"driver": 2, "worker": 2, "jobs": 1}

// crashMembers crashes the components of a driver and of its workers when they come and leave: it must be let in, and all that
// was theirs must still go.
func crashMembers(t *testing.T, ctx context.Context, n *node.Node, faults *actors.Faults) {
	t.Helper()
	for kind, times := range atEnd {
		defer faults.Inject(actors.Fault{Kind: kind, Times: times, Action: actors.PanicMidStep})()
	}
	before := components(n)
	c, err := n.Attach(ctx, "")
	if err != nil {
		t.Fatal(err)
	}
	if v, err := harness.Add.Go(client.WithTask(ctx, c.Root()), mobula.V(1.0), mobula.V(2.0)).Get(ctx); err != nil || v != 3 {
		t.Errorf("a second driver's task: %v, %v", v, err)
	}
	if err := c.Close(ctx); err != nil {
		t.Error(err)
	}
	harness.Eventually(t, ctx, "what the second driver had is gone from the tree", func() bool { return components(n) == before })
	for kind := range atEnd {
		harness.Eventually(t, ctx, "a "+kind+" was restarted", func() bool { return n.Restarts()[kind] > 0 })
	}
}

func components(n *node.Node) (live int) {
	for _, c := range n.Components() {
		if c.Kind == "driver" || c.Kind == "owner" {
			live++
		}
	}
	return live
}

// crashRounds is how often each component crashes.
const crashRounds = 3

// crashAll crashes one component after another, whatever the tree has, until none is left
// that has not crashed so often. It gives how often each did.
func crashAll(t *testing.T, ctx context.Context, n *node.Node, faults *actors.Faults, r *rand.Rand) map[string]int {
	t.Helper()
	done := make(map[string]int)
	harness.Eventually(t, ctx, "the control plane runs", func() bool { return hasKind(n, "gcs") })
	for again := true; again; {
		again = false
		for _, c := range n.Components() {
			if c.Bound == 0 || done[c.Path] >= crashRounds || atEnd[c.Kind] > 0 {
				continue // a supervisor steps nothing of its own: what is below it does
			}
			nth := 1 + r.IntN(int(min(c.Handled/4+1, 200))) // soon, even where there is little to do
			before := restarts(n, c.Path)
			remove := faults.Inject(actors.Fault{Kind: c.Kind, Name: c.Name, Nth: nth, Action: actors.PanicMidStep})
			harness.Eventually(t, ctx, c.Path+" crashed and was restarted", func() bool { return restarts(n, c.Path) > before })
			remove()
			done[c.Path] = before + 1
			again = true
		}
	}
	for _, kind := range []string{"gcs", "objectstore", "spiller", "scheduler", "owner"} {
		if !hasKind(n, kind) {
			t.Errorf("no component of kind %q is in the tree", kind)
		}
	}
	return done
}

func hasKind(n *node.Node, kind string) bool {
	for _, c := range n.Components() {
		if c.Kind == kind {
			return true
		}
	}
	return false
}

// restarts is how often a component was restarted; -1 where there is none of the path.
func restarts(n *node.Node, path string) int {
	for _, c := range n.Components() {
		if c.Path == path {
			return c.Restarts
		}
	}
	return -1
}
