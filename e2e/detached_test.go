package e2e

import (
	"context"
	"testing"

	"mobula"
)

// bound is the driver process' actor that is not detached; without a handle it would end by itself.
var bound mobula.ActorRef[counter]

func init() {
	detached := driverBodies["detached"]
	driverBodies["detached-and-bound"] = func(ctx context.Context) (err error) {
		if bound, err = counterType.Spawn(ctx, mobula.V(0), mobula.Named("e2e", "bound")); err != nil {
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
			ctx, cancel := limit(t)
			defer cancel()
			p := mustLaunch(t, nodeConfig{Dir: tempDir(t), CPUs: 2, Store: 16 << 20, StoreDir: tempDir(t)})
			_, ctx = connect(t, ctx, p)
			d := launchDriver(t, p.address, "detached-and-bound")
			a, err := mobula.GetActor[counter](ctx, "e2e", "left-behind")
			if err != nil {
				t.Fatalf("while its driver lives: %v", err)
			}
			if v, err := counterInc.Go(ctx, a, mobula.V(1)).Get(ctx); err != nil || v != 42 {
				t.Errorf("while its driver lives: %v, %v", v, err)
			}
			if end == "leaves" {
				d.stop(t)
			} else {
				d.kill(t)
			}
			eventually(t, ctx, "the actors of its job are gone, but for the detached one", func() bool {
				_, err := mobula.GetActor[counter](ctx, "e2e", "bound")
				return isErr(err, mobula.ErrNotFound)
			})
			again, err := mobula.GetActor[counter](ctx, "e2e", "left-behind")
			if err != nil {
				t.Fatalf("after its driver: %v", err)
			}
			if v, err := counterInc.Go(ctx, again, mobula.V(1)).Get(ctx); err != nil || v != 43 {
				t.Errorf("after its driver: %v, %v", v, err)
			}
			if _, err := counterType.Spawn(ctx, mobula.V(0), mobula.Named("e2e", "left-behind")); !isErr(err, mobula.ErrNameTaken) {
				t.Errorf("a second one of its name: %v", err)
			}
			if err := again.Kill(ctx); err != nil {
				t.Error(err)
			}
			eventually(t, ctx, "killed, it gives up its name", func() bool {
				_, err := mobula.GetActor[counter](ctx, "e2e", "left-behind")
				return isErr(err, mobula.ErrNotFound)
			})
		})
	}
}
