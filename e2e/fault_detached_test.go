package e2e

import (
	"context"
	"fmt"
	"testing"

	"mobula"
)

func init() {
	// reach finds what another driver left behind and counts on.
	driverBodies["reach"] = func(ctx context.Context) error {
		a, err := mobula.GetActor[counter](ctx, "e2e", "left-behind")
		if err != nil {
			return err
		}
		if v, err := counterInc.Go(ctx, a, mobula.V(1)).Get(ctx); err != nil || v != 42 {
			return fmt.Errorf("the second call gave %d, %w", v, err)
		}
		return nil
	}
}

// A detached actor outlives its driver, however that ends, with its state; a second driver
// process reaches it by name.
func TestFaultDetachedActorOutlivesItsDriver(t *testing.T) {
	for what, end := range map[string]func(t *testing.T, p *nodeProcess){
		"closed": func(t *testing.T, p *nodeProcess) { p.stop(t) },
		"killed": func(t *testing.T, p *nodeProcess) { p.kill(t) },
	} {
		t.Run(what, func(t *testing.T) {
			ctx, cancel := limit(t)
			defer cancel()
			p := mustLaunch(t, nodeConfig{Dir: tempDir(t), CPUs: 2, Store: 16 * mib, StoreDir: tempDir(t)})
			end(t, launchDriver(t, p.address, "detached"))
			launchDriver(t, p.address, "reach").stop(t)
			_, ctx = connect(t, ctx, p)
			a, err := mobula.GetActor[counter](ctx, "e2e", "left-behind")
			if err != nil {
				t.Fatal(err)
			}
			if v, err := counterInc.Go(ctx, a, mobula.V(1)).Get(ctx); err != nil || v != 43 {
				t.Errorf("the third call gave %d, %v", v, err)
			}
			if err := a.Kill(ctx); err != nil {
				t.Fatal(err)
			}
			var last error
			for !isErr(last, mobula.ErrActorDied) { // calls on their way to it may still be answered
				if _, last = counterInc.Go(ctx, a, mobula.V(1)).Get(ctx); ctx.Err() != nil {
					t.Fatalf("a call of the dead actor: %v", last)
				}
			}
			eventually(t, ctx, "its name is free", func() bool {
				_, err := mobula.GetActor[counter](ctx, "e2e", "left-behind")
				return isErr(err, mobula.ErrNotFound)
			})
		})
	}
}
