package restarts

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"mobula"
	"mobula/e2e/harness"
)

func init() {
	// reach finds what another driver left behind and counts on.
	harness.DriverBodies["reach"] = func(ctx context.Context) error {
		a, err := mobula.GetActor[harness.Counter](ctx, "e2e", "left-behind")
		if err != nil {
			return err
		}
		if v, err := harness.CounterInc.Go(ctx, a, mobula.V(1)).Get(ctx); err != nil || v != 42 {
			return fmt.Errorf("the second call gave %d, %w", v, err)
		}
		return nil
	}
}

// A detached actor outlives its driver, however that ends, with its state; a second driver
// process reaches it by name.
func TestFaultDetachedActorOutlivesItsDriver(t *testing.T) {
	for what, end := range map[string]func(t *testing.T, p *harness.NodeProcess){
		"closed": func(t *testing.T, p *harness.NodeProcess) { p.Stop(t) },
		"killed": func(t *testing.T, p *harness.NodeProcess) { p.Kill(t) },
	} {
		t.Run(what, func(t *testing.T) {
			ctx, cancel := harness.Limit(t)
			defer cancel()
			p := harness.MustLaunch(t, harness.NodeConfig{Dir: harness.TempDir(t), CPUs: 2, Store: 16 * harness.MiB, StoreDir: harness.TempDir(t)})
			end(t, harness.LaunchDriver(t, p.Address, "detached"))
			harness.LaunchDriver(t, p.Address, "reach").Stop(t)
			_, ctx = harness.Connect(t, ctx, p)
			a, err := mobula.GetActor[harness.Counter](ctx, "e2e", "left-behind")
			if err != nil {
				t.Fatal(err)
			}
			if v, err := harness.CounterInc.Go(ctx, a, mobula.V(1)).Get(ctx); err != nil || v != 43 {
				t.Errorf("the third call gave %d, %v", v, err)
			}
			if err := a.Kill(ctx); err != nil {
				t.Fatal(err)
			}
			var last error
			for !errors.Is(last, mobula.ErrActorDied) { // calls on their way to it may still be answered
				if _, last = harness.CounterInc.Go(ctx, a, mobula.V(1)).Get(ctx); ctx.Err() != nil {
					t.Fatalf("a call of the dead actor: %v", last)
				}
			}
			harness.Eventually(t, ctx, "its name is free", func() bool {
				_, err := mobula.GetActor[harness.Counter](ctx, "e2e", "left-behind")
				return errors.Is(err, mobula.ErrNotFound)
			})
		})
	}
}
