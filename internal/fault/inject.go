package fault

import (
	"context"
	"sync/atomic"
	"time"

	"mobula/internal/errs"
)

// Decider is a plan, or the way to one.
type Decider interface {
	// Ask takes one occurrence and gives what its process is to suffer: Crash, of a component, Delay, Drop, Duplicate, Fail or None.
	// What others suffer is done when it returns.
	Ask(ctx context.Context, s Site, who Subject) Decision
	// Wants tells whether a rule is about such a site. Places are always asked for: somebody may wait for them.
	Wants(k Kind, name string) bool
	// Address is the plan's socket.
	Address() string
	// Calm is closed when nothing is to be late any more; nil: never.
	Calm() <-chan struct{}
}

// Injector is a process' way to its plan. A nil one injects nothing.
type Injector struct {
	D   Decider
	Who Subject
}

// Call is a call of a function about to begin, or ended. The error is one that it is to fail with.
func (j *Injector) Call(ctx context.Context, k Kind, function string) error {
	if j == nil || !j.D.Wants(k, function) {
		return nil
	}
	return j.suffer(ctx, Site{Kind: k, Name: function})
}

func (j *Injector) suffer(ctx context.Context, s Site) error {
	d := j.D.Ask(ctx, s, j.Who)
	switch d.Do {
	case Delay:
		Sleep(ctx, j.D, d.For)
		return context.Cause(ctx) // what was cancelled while it was late does not begin
	case Fail:
		if d.Err != nil {
			return d.Err
		}
		return errs.New(errs.CodeUnknown, "chaos: injected failure at %v", s)
	}
	return nil
}

// Sleep waits as a plan says, at most until ctx ends or the plan is quiet.
func Sleep(ctx context.Context, of Decider, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-of.Calm():
	case <-ctx.Done():
	}
}

// active is this process' way to the plan that its places ask.
var active atomic.Pointer[Injector]

// Activate has the places of this process ask; false where those of another plan do already.
func Activate(j *Injector) bool { return active.CompareAndSwap(nil, j) }

// Deactivate ends that.
func Deactivate(d Decider) {
	if j := active.Load(); j != nil && j.D == d {
		active.CompareAndSwap(j, nil)
	}
}

// Current is the plan of this process, if it is the test's own; nil: it is not, or there is none.
func Current() *Plan {
	j := active.Load()
	if j == nil {
		return nil
	}
	p, _ := j.D.(*Plan)
	return p
}

// Point is a place that was reached.
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
		return nil // it ended just now
	}
	return j.suffer(ctx, Site{Kind: Place, Name: name})
}
