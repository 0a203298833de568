package api

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"testing"

	"mobula"
	"mobula/internal/testkit"
	"mobula/mobulatest"
)

// maker is an actor whose calls make others, and end when they are cancelled.
type maker struct{}

// making tells of what has begun and has ended.
var making chan string

// Make submits a task and, while there are others, calls the next one, which does the same.
func (*maker) Make(ctx context.Context, others []mobula.ActorRef[maker], name string) (int, error) {
	task := makerTask.Go(ctx, mobula.V(name+"'s task"))
	defer task.Release()
	if len(others) > 0 {
		call := goOn(ctx, others, name+"'s call")
		defer call.Release()
	}
	return waitsCancelled(ctx, name)
}

// Pass gives a reference to a call of another actor.
func (*maker) Pass(ctx context.Context, a mobula.ActorRef[maker], name string) ([]mobula.Ref[int], error) {
	return []mobula.Ref[int]{goOn(ctx, []mobula.ActorRef[maker]{a}, name)}, nil
}

// Child gives an actor whose failure is one of this one.
func (*maker) Child(ctx context.Context) (mobula.ActorRef[relay], error) {
	return relays.Spawn(ctx, mobula.Escalate())
}

// goOn calls the first of some makers; set later, since Make is what it calls.
var goOn func(ctx context.Context, as []mobula.ActorRef[maker], name string) mobula.Ref[int]

func init() {
	goOn = func(ctx context.Context, as []mobula.ActorRef[maker], name string) mobula.Ref[int] {
		return makerMake.Go(ctx, as[0], mobula.V(as[1:]), mobula.V(name))
	}
}

func waitsCancelled(ctx context.Context, name string) (int, error) {
	making <- name + " begins"
	<-ctx.Done()
	making <- name + " ends"
	return 0, context.Cause(ctx)
}

var (
	makers     = mobula.RegisterActor0("e2e/maker", func(context.Context) (*maker, error) { return &maker{}, nil })
	makerMake  = mobula.RegisterMethod2(makers, "Make", (*maker).Make)
	makerPass  = mobula.RegisterMethod2(makers, "Pass", (*maker).Pass)
	makerChild = mobula.RegisterMethod0(makers, "Child", (*maker).Child)
	makerTask  = mobula.Register1("e2e/maker-task", waitsCancelled)
)

// bothWays runs a test with calls that go by the owner, and with such that go straight.
func bothWays(t *testing.T, test func(t *testing.T, c *mobula.Cluster)) {
	for _, straight := range []string{"0", "1"} {
		t.Run("MOBULA_STRAIGHT_CALLS="+straight, func(t *testing.T) {
			t.Setenv("MOBULA_STRAIGHT_CALLS", straight)
			making = make(chan string, 64)
			test(t, mobulatest.Start(t, mobula.WithCPUs(8)))
		})
	}
}

// tells waits until all of some things are told, in any order.
func tells(t *testing.T, want ...string) {
	t.Helper()
	for len(want) > 0 {
		got := testkit.Receive(t, "one of "+want[0], making)
		i := slices.Index(want, got)
		if i < 0 {
			t.Fatalf("%s, want %q", got, want)
		}
		want = slices.Delete(want, i, i+1)
	}
}

func spawnMakers(ctx context.Context, t *testing.T, n int) (all []mobula.ActorRef[maker]) {
	t.Helper()
	for range n {
		all = append(all, must(makers.Spawn(ctx))(t))
	}
	return all
}

// A call that is cancelled with what it has made takes tasks and calls along, and what those have made; also where it ends with a context.
func TestCancelOfWhatACallHasMade(t *testing.T) {
	bothWays(t, func(t *testing.T, c *mobula.Cluster) {
		ctx := c.Context(t.Context())
		as := spawnMakers(ctx, t, 3)
		all := []string{"a", "a's task", "a's call", "a's call's task", "a's call's call", "a's call's call's task"}
		every := func(what string) (out []string) {
			for _, s := range all {
				out = append(out, s+what)
			}
			return out
		}
		ref := goOn(ctx, as, "a")
		tells(t, every(" begins")...)
		if err := ref.Cancel(ctx, mobula.Recursive()); err != nil {
			t.Fatal(err)
		}
		tells(t, every(" ends")...)
		if _, err := ref.Get(ctx); !errors.Is(err, mobula.ErrCancelled) {
			t.Errorf("it came to %v", err)
		}
		ref = makerMake.Go(ctx, as[0], mobula.V(as[1:]), must(mobula.Put(ctx, "a"))(t)) // by the owner, which resolves its name; what it calls goes straight
		tells(t, every(" begins")...)
		if err := ref.Cancel(ctx, mobula.Recursive()); err != nil {
			t.Fatal(err)
		}
		tells(t, every(" ends")...)
		bound, cancel := context.WithCancel(ctx)
		goOn(bound, as, "a")
		tells(t, every(" begins")...)
		cancel()
		tells(t, every(" ends")...)
	})
}

// Who gets a reference to another's call can cancel it, with what it has made.
func TestCancelOfACallOfAnother(t *testing.T) {
	bothWays(t, func(t *testing.T, c *mobula.Cluster) {
		ctx := c.Context(t.Context())
		as := spawnMakers(ctx, t, 2)
		for _, how := range [][]mobula.CancelOption{{mobula.Recursive()}, {mobula.Recursive(), mobula.Force()}} {
			refs := must(makerPass.Go(ctx, as[0], mobula.V(as[1]), mobula.V("b")).Get(ctx))(t)
			tells(t, "b begins", "b's task begins")
			if err := refs[0].Cancel(ctx, how...); err != nil {
				t.Fatal(err)
			}
			tells(t, "b ends", "b's task ends")
			if _, err := refs[0].Get(ctx); !errors.Is(err, mobula.ErrCancelled) {
				t.Errorf("it came to %v", err)
			}
		}
		refs := must(makerPass.Go(ctx, as[0], mobula.V(as[1]), mobula.V("b")).Get(ctx))(t)
		tells(t, "b begins", "b's task begins")
		if err := refs[0].Cancel(ctx); err != nil {
			t.Fatal(err)
		}
		tells(t, "b ends") // and its task goes on
		if _, err := refs[0].Get(ctx); !errors.Is(err, mobula.ErrCancelled) {
			t.Errorf("it came to %v", err)
		}
	})
}

// The parent of an actor is the one whose call has created it.
func TestAChildOfACallEscalates(t *testing.T) {
	bothWays(t, func(t *testing.T, c *mobula.Cluster) {
		ctx := c.Context(t.Context())
		parent := spawnMakers(ctx, t, 1)[0]
		child := must(makerChild.Go(ctx, parent).Get(ctx))(t)
		if _, err := relayPanic.Go(ctx, child).Get(ctx); !errors.Is(err, mobula.ErrPanic) {
			t.Fatalf("the child's panic gives %v", err)
		}
		testkit.Eventually(t, "the parent is dead", func() bool {
			_, err := makerChild.Go(ctx, parent).Get(ctx)
			return errors.Is(err, mobula.ErrActorDied)
		})
	})
}

// A large result that nobody wants any more when it is made is let go of.
func TestALargeResultOfADroppedCallIsLetGo(t *testing.T) {
	bothWays(t, func(t *testing.T, c *mobula.Cluster) {
		ctx := c.Context(t.Context())
		r := must(relays.Spawn(ctx))(t)
		for range 20 {
			relayLarge.Go(ctx, r, mobula.V(1<<20)).Release()
		}
		must(relayLarge.Go(ctx, r, mobula.V(1)).Get(ctx))(t) // behind those
		r.Release()
		testkit.Eventually(t, "no object is left", func() bool {
			runtime.GC() // of references that were not let go of
			return must(c.ListObjects(ctx, mobula.Query{}))(t).Total == 0
		})
	})
}
