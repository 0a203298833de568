package api

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"

	"mobula"
	"mobula/e2e/harness"
	"mobula/internal/node"
	"mobula/internal/testkit"
	"mobula/mobulatest"
)

func objectsOf(ctx context.Context, t *testing.T, n *node.Node) (objects int, held uint64) {
	t.Helper()
	s, err := n.StoreStats(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return s.Objects, s.Held
}

func TestO3SmallValuesTakeNoStore(t *testing.T) {
	harness.BothModes(t, node.Config{CPUs: 1, StoreBytes: 16 << 20}, func(t *testing.T, ctx context.Context, n *node.Node) {
		const limit = 100 << 10
		for _, c := range []struct{ bytes, objects int }{{limit, 0}, {limit + 1, 1}} {
			put, err := mobula.Put(ctx, make([]byte, c.bytes))
			if err != nil {
				t.Fatal(err)
			}
			get(ctx, t, e2eLen.Go(ctx, put), c.bytes) // the put has arrived
			if k, _ := objectsOf(ctx, t, n); k != c.objects {
				t.Errorf("a put of %d bytes made %d objects in the store, want %d", c.bytes, k, c.objects)
			}
			made := e2eBig.Go(ctx, mobula.V(c.bytes))
			get(ctx, t, e2eLen.Go(ctx, made), c.bytes)
			if k, _ := objectsOf(ctx, t, n); k != 2*c.objects {
				t.Errorf("with a result of %d bytes there are %d objects in the store, want %d", c.bytes, k, 2*c.objects)
			}
			put.Release()
			made.Release()
			testkit.Eventually(t, "both are gone", func() bool { k, _ := objectsOf(ctx, t, n); return k == 0 })
		}
	})
}

// keeper is an actor that keeps a reference.
type keeper struct{ r mobula.Ref[[]byte] }

type kept struct{ R mobula.Ref[[]byte] }

func (k *keeper) Keep(_ context.Context, in kept) (bool, error) { k.r = in.R; return true, nil }

func (k *keeper) Drop(context.Context) (bool, error) {
	k.r.Release()
	k.r = mobula.Ref[[]byte]{}
	return true, nil
}

func (k *keeper) Len(ctx context.Context) (int, error) {
	b, err := k.r.Get(ctx)
	return len(b), err
}

var (
	keepers    = mobula.RegisterActor0("e2e/keeper", func(context.Context) (*keeper, error) { return &keeper{}, nil })
	keeperKeep = mobula.RegisterMethod1(keepers, "Keep", (*keeper).Keep)
	keeperDrop = mobula.RegisterMethod0(keepers, "Drop", (*keeper).Drop)
	keeperLen  = mobula.RegisterMethod0(keepers, "Len", (*keeper).Len)
)

func TestO7TheLastReferenceFrees(t *testing.T) {
	harness.BothModes(t, node.Config{CPUs: 1, StoreBytes: 32 << 20}, func(t *testing.T, ctx context.Context, n *node.Node) {
		a, err := keepers.Spawn(ctx)
		if err != nil {
			t.Fatal(err)
		}
		r, err := mobula.Put(ctx, make([]byte, 8<<20))
		if err != nil {
			t.Fatal(err)
		}
		get(ctx, t, keeperKeep.Go(ctx, a, mobula.V(kept{r})), true)
		r.Release() // the driver's; the actor has borrowed it
		get(ctx, t, keeperLen.Go(ctx, a), 8<<20)
		if _, held := objectsOf(ctx, t, n); held < 8<<20 {
			t.Errorf("%d bytes are held with a reference left", held)
		}
		get(ctx, t, keeperDrop.Go(ctx, a), true)
		testkit.Eventually(t, "it is freed", func() bool { k, held := objectsOf(ctx, t, n); return k == 0 && held == 0 })
	})
}

// The loops fill the store fifteen times over, at full size many times more. Each copies 128 KiB twice, which the race detector makes slow.
func TestO8LoopsLeaveNothing(t *testing.T) {
	harness.BothModes(t, node.Config{CPUs: 2, StoreBytes: 16 << 20}, func(t *testing.T, ctx context.Context, n *node.Node) {
		for range harness.Size(2000, 10_000) {
			r, err := mobula.Put(ctx, make([]byte, 128<<10))
			if err != nil {
				t.Fatal(err)
			}
			length := e2eLen.Go(ctx, r)
			get(ctx, t, length, 128<<10)
			length.Release()
			r.Release()
		}
		testkit.Eventually(t, "the store and the owner are empty", func() bool {
			k, held := objectsOf(ctx, t, n)
			all, err := n.OwnerStats(ctx)
			return k == 0 && held == 0 && err == nil && len(all) == 1 && all[0].Objects == 0 && all[0].Tasks == 0
		})
	})
}

// Tasks of one class share leases: the scheduler is asked a few times, not a thousand.
func TestS2OneLeaseServesManyTasks(t *testing.T) {
	harness.BothModes(t, node.Config{CPUs: 2, StoreBytes: 16 << 20}, func(t *testing.T, ctx context.Context, n *node.Node) {
		for i := range 1000 { // one after the other: each could have asked
			get(ctx, t, e2eAdd.Go(ctx, mobula.V(float64(i)), mobula.V(1.0)), float64(i+1))
		}
		all, err := n.OwnerStats(ctx)
		if err != nil || len(all) != 1 {
			t.Fatal(all, err)
		}
		if s := all[0]; s.Pushed < 1000 || s.LeasesGranted == 0 || s.LeasesGranted > 50 || s.LeaseRequests > 100 {
			t.Errorf("%d tasks were pushed over %d leases, asked for %d times", s.Pushed, s.LeasesGranted, s.LeaseRequests)
		}
	})
}

var e2eHoldArg = mobula.Register3("e2e/holdArg", func(ctx context.Context, dir, name string, b []byte) (int, error) {
	if _, err := hold(ctx, dir, name); err != nil {
		return 0, err
	}
	return len(b), nil
})

// Ten tasks with a fifth of the store each as argument: the arguments of those that run
// take 70 % of the store at most, and all finish.
func TestS6ArgumentsOfRunningTasksAreBounded(t *testing.T) {
	const store = 64 << 20
	c := mobulatest.Start(t, mobula.WithStore(store), mobula.WithCPUs(10))
	ctx := c.Context(t.Context())
	dir := t.TempDir()
	var refs []mobula.Ref[int]
	for i := range 10 {
		arg := e2eBig.Go(ctx, mobula.V(store/5))
		refs = append(refs, e2eHoldArg.Go(ctx, mobula.V(dir), mobula.V(fmt.Sprint(i)), arg))
		arg.Release()
	}
	began := func() (n int) {
		for i := range refs {
			if exists(filepath.Join(dir, fmt.Sprint(i, ".began")))() {
				n++
			}
		}
		return n
	}
	testkit.Eventually(t, "three run and seven have been made and wait", func() bool {
		p, err := c.ListTasks(ctx, mobula.Query{Filters: []mobula.Filter{{Field: "func", Value: "e2e/holdArg"}, {Field: "state", Value: "RUNNING"}}})
		if err != nil {
			t.Fatal(err)
		}
		made, err := c.ListTasks(ctx, mobula.Query{Filters: []mobula.Filter{{Field: "func", Value: "e2e/big"}, {Field: "state", Value: "FINISHED", Not: true}}})
		if err != nil {
			t.Fatal(err)
		}
		if p.Total > 3 {
			t.Fatalf("%d tasks run, with %d bytes of arguments in a store of %d", p.Total, p.Total*(store/5), store)
		}
		if n := began(); n > 3 {
			t.Fatalf("%d tasks began, want 3", n)
		}
		return p.Total == 3 && made.Total == 0 && began() == 3
	})
	if err := note(filepath.Join(dir, "go"), "x"); err != nil {
		t.Fatal(err)
	}
	got, err := mobula.GetAll(ctx, refs)
	if err != nil {
		t.Fatal(err)
	}
	for i, n := range got {
		if n != store/5 {
			t.Errorf("task %d had an argument of %d bytes", i, n)
		}
	}
}
