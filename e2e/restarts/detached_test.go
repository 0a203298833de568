package restarts

import (
	"context"
	"errors"
	"testing"

	"mobula"
	"mobula/e2e/harness"
)

// bound is the driver process' actor that is not detached; without a handle it would end by itself.
var bound mobula.ActorRef[harness.Counter]

func init() {
	// detached makes a detached actor and leaves.
	detached := func(ctx context.Context) error {
		a, err := harness.CounterType.Spawn(ctx, mobula.V(40), mobula.Named("e2e", "left-behind"), mobula.Detached())
		if err != nil {
			return err
		}
		_, err = harness.CounterInc.Go(ctx, a, mobula.V(1)).Get(ctx)
		return err
	}
	harness.DriverBodies["detached"] = detached
	harness.DriverBodies["detached-and-bound"] = func(ctx context.Context) (err error) {
		if bound, err = harness.CounterType.Spawn(ctx, mobula.V(0), mobula.Named("e2e", "bound")); err != nil {
			return err
		}
		if err := bound.Ready(ctx); err != nil {
			return err
		}
		return detached(ctx)
	}
}

// A detached actor is found by its name from another process, and outlives the driver that
// made it, whether that leaves or is killed. What is not detached does not.
func TestDetachedActorOutlivesItsDriver(t *testing.T) {
	for _, end := range []string{"leaves", "is killed"} {
		t.Run("the driver "+end, func(t *testing.T) {
			ctx, cancel := harness.Limit(t)
			defer cancel()
			p := harness.MustLaunch(t, harness.NodeConfig{Dir: harness.TempDir(t), CPUs: 2, Store: 16 << 20, StoreDir: harness.TempDir(t)})
			_, ctx = harness.Connect(t, ctx, p)
			d := harness.LaunchDriver(t, p.Address, "detached-and-bound")
			a, err := mobula.GetActor[harness.Counter](ctx, "e2e", "left-behind")
			if err != nil {
				t.Fatalf("while its driver lives: %v", err)
			}
			if v, err := harness.CounterInc.Go(ctx, a, mobula.V(1)).Get(ctx); err != nil || v != 42 {
				t.Errorf("while its driver lives: %v, %v", v, err)
			}
			if end == "leaves" {
				d.Stop(t)
			} else {
				d.Kill(t)
			}
			harness.Eventually(t, ctx, "the actors of its job are gone, but for the detached one", func() bool {
				_, err := mobula.GetActor[harness.Counter](ctx, "e2e", "bound")
				return errors.Is(err, mobula.ErrNotFound)
			})
			again, err := mobula.GetActor[harness.Counter](ctx, "e2e", "left-behind")
			if err != nil {
				t.Fatalf("after its driver: %v", err)
			}
			if v, err := harness.CounterInc.Go(ctx, again, mobula.V(1)).Get(ctx); err != nil || v != 43 {
				t.Errorf("after its driver: %v, %v", v, err)
			}
			if _, err := harness.CounterType.Spawn(ctx, mobula.V(0), mobula.Named("e2e", "left-behind")); !errors.Is(err, mobula.ErrNameTaken) {
				t.Errorf("a second one of its name: %v", err)
			}
			if err := again.Kill(ctx); err != nil {
				t.Error(err)
			}
			if _, err := mobula.GetActor[harness.Counter](ctx, "e2e", "left-behind"); !errors.Is(err, mobula.ErrNotFound) {
				t.Errorf("killed, it is found still: %v", err)
			}
		})
	}
}

// A program that replaces a detached actor, another's or its own, kills it and takes its name at once; until then nobody has the name.
func TestTheNameOfAKilledActorCanBeTakenAtOnce(t *testing.T) {
	ctx, cancel := harness.Limit(t)
	defer cancel()
	p := harness.MustLaunch(t, harness.NodeConfig{Dir: harness.TempDir(t), CPUs: 2, Store: 16 << 20, StoreDir: harness.TempDir(t)})
	_, first := harness.Connect(t, ctx, p)
	_, second := harness.Connect(t, ctx, p)
	_, err := harness.CounterType.Spawn(first, mobula.V(0), mobula.Named("e2e", "replaced"), mobula.Detached())
	if err != nil {
		t.Fatal(err)
	}
	for i := range 20 {
		ctx := first
		if i%4 < 2 {
			ctx = second
		}
		found, err := mobula.GetActor[harness.Counter](ctx, "e2e", "replaced")
		if err != nil {
			t.Fatalf("actor %d is not found: %v", i, err)
		}
		if err := found.Kill(ctx); err != nil {
			t.Fatal(err)
		}
		if _, err := mobula.GetActor[harness.Counter](ctx, "e2e", "replaced"); !errors.Is(err, mobula.ErrNotFound) {
			t.Errorf("actor %d was killed, and is found: %v", i, err)
		}
		made, err := harness.CounterType.Spawn(ctx, mobula.V(i), mobula.Named("e2e", "replaced"), mobula.Detached())
		if err != nil {
			t.Fatalf("once actor %d was killed its name cannot be taken: %v", i, err)
		}
		if v, err := harness.CounterInc.Go(ctx, made, mobula.V(1)).Get(ctx); err != nil || v != i+1 {
			t.Errorf("the actor that replaces it answers %d, %v", v, err)
		}
	}
}
