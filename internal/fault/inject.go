package fault

import (
	"context"
	"sync/atomic"
	"time"

	"mobula/internal/errs"
)

// Decider is a plan, or a connection to one.
type Decider interface {
	// Ask takes one occurrence and returns the fault for the asking process to make: Crash (of a component), Delay, Drop, Duplicate,
	// Fail or None. Faults of other processes are done when it returns.
	Ask(ctx context.Context, s Site, who Subject) Decision
	// Wants tells whether a rule names such a site. It is always true for places: somebody may wait for them.
	Wants(k Kind, name string) bool
	// Address is the plan's socket.
	Address() string
	// Calm is closed when delays should end; nil: never.
	Calm() <-chan struct{}
}

// Injector connects a process to its plan. A nil Injector injects nothing.
type Injector struct {
	D   Decider
	Who Subject
}

// Call reports a call of a function that is about to begin or has ended. If the error is not nil the call must
// fail with it.
func (j *Injector) Call(ctx context.Context, k Kind, function string) error {
	if j == nil || !j.D.Wants(k, function) {
		return nil
	}
	return j.apply(ctx, Site{Kind: k, Name: function})
}

func (j *Injector) apply(ctx context.Context, s Site) error {
	d := j.D.Ask(ctx, s, j.Who)
	switch d.Do {
	case Delay:
		Sleep(ctx, j.D, d.For)
		return context.Cause(ctx) // a call that is cancelled while it is delayed does not begin
	case Fail:
		if d.Err != nil {
			return d.Err
		}
		return errs.New(errs.CodeUnknown, "chaos: injected failure at %v", s)
	}
	return nil
}

// Sleep waits for a plan's delay, at most until ctx ends or the plan is quiet.
func Sleep(ctx context.Context, of Decider, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-of.Calm():
	case <-ctx.Done():
	}
}

// active is the Injector that the places of this process ask.
var active atomic.Pointer[Injector]

// Activate lets the places of this process ask j; false if they ask another plan already.
func Activate(j *Injector) bool { return active.CompareAndSwap(nil, j) }

// Deactivate ends Activate.
func Deactivate(d Decider) {
	if j := active.Load(); j != nil && j.D == d {
		active.CompareAndSwap(j, nil)
	}
}

// Current is the plan of this process, if this is the test's process; nil if it is not, or there is no plan.
func Current() *Plan {
	j := active.Load()
	if j == nil {
		return nil
	}
	p, _ := j.D.(*Plan)
	return p
}

// Point reports that a place was reached.
func Point(ctx context.Context, name string) error {
	if active.Load() == nil {
		return nil
	}
	return reached(ctx, name)
}

// reached is Point in a process that has a plan; apart, so that Point is inlined.
func reached(ctx context.Context, name string) error {
	j := active.Load()
	if j == nil {
		return nil // the plan has just ended
	}
	return j.apply(ctx, Site{Kind: Place, Name: name})
}
