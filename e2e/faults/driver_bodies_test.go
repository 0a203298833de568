package faults

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"mobula"
	"mobula/e2e/harness"
)

var (
	hoarded []mobula.Ref[[]float64]
	stuck   mobula.Ref[int]
)

func init() {
	// hoard fills the store twice over and runs a task that does not end.
	harness.DriverBodies["hoard"] = func(ctx context.Context) error {
		for i := range 32 {
			ref := harness.Fill.Go(ctx, mobula.V(1<<17), mobula.V(float64(i)))
			if _, _, err := mobula.Wait(ctx, []mobula.Ref[[]float64]{ref}, 1); err != nil {
				return err
			}
			hoarded = append(hoarded, ref)
		}
		a, err := harness.CounterType.Spawn(ctx, mobula.V(0))
		if err != nil {
			return err
		}
		if _, err := harness.CounterInc.Go(ctx, a, mobula.V(1)).Get(ctx); err != nil {
			return err
		}
		stuck = harness.Sleepy.Go(ctx, mobula.V(600_000), mobula.V(0))
		return nil
	}
	// late calls a function that it registers too late.
	harness.DriverBodies["late"] = func(ctx context.Context) error {
		f := mobula.Register0("e2e/late", func(context.Context) (int, error) { return 1, nil })
		_, err := f.Go(ctx).Get(ctx)
		if !errors.Is(err, mobula.ErrUnknownFunction) || !strings.Contains(err.Error(), "e2e/late") {
			return fmt.Errorf("a function that the worker does not know: %v", err)
		}
		v, err := harness.Add.Go(ctx, mobula.V(1.0), mobula.V(2.0)).Get(ctx)
		if err != nil || v != 3 {
			return fmt.Errorf("afterwards: %v, %w", v, err)
		}
		return nil
	}
}
