package worker

import (
	"context"
	"os"

	inject "mobula/internal/fault"
	"mobula/internal/registry"
)

// follow lets this process follow a test's plan of faults, if there is one.
func follow(address string) (*inject.Injector, error) {
	if address == "" {
		return nil, nil
	}
	plan, err := inject.Dial(address)
	if err != nil {
		return nil, err
	}
	j := &inject.Injector{D: plan, Who: inject.Subject{PID: os.Getpid(), Worker: true}}
	inject.Activate(j)
	return j, nil
}

// enter calls the function, with a test's faults before and after it.
func (r *runner) enter(ctx context.Context, fn *registry.Function) (outs []registry.Output, instance any, err error) {
	faults := r.lane.e.cfg.Faults
	if faults == nil {
		return fn.Invoke(ctx, &r.arg)
	}
	if err = faults.Call(ctx, inject.Before, fn.Name); err == nil {
		outs, instance, err = fn.Invoke(ctx, &r.arg)
		if e := faults.Call(ctx, inject.After, fn.Name); err == nil {
			err = e
		}
	}
	return outs, instance, err
}
