package mobulatest

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"mobula"
	"mobula/chaos"
	"mobula/internal/fault"
)

// WithFaults makes the plan's faults in the runtime. When the test fails, its log has the faults that were made and the seed;
// MOBULA_CHAOS_SEED replays it if the plan was made with chaos.Seed. A rule that could not be carried out fails the test. A process can use
// one plan at a time: such tests do not run in parallel.
//
// Experimental: faults may change in any release.
func WithFaults(plan *chaos.Plan) mobula.StartOption { return mobula.WithFaults(plan) }

// report logs what a plan did, after its test.
func report(t testing.TB, plan *chaos.Plan) {
	t.Helper()
	if plan == nil {
		return
	}
	p := plan.Faults()
	if err := p.Wrong(); err != nil {
		t.Errorf("mobulatest: a fault could not be made: %v", err)
	}
	for _, r := range p.Unused() {
		t.Logf("mobulatest: never happened: %s at %v", r.Do, r.At)
	}
	if !t.Failed() {
		return
	}
	for _, h := range plan.Hits() {
		t.Logf("mobulatest: rule %d, occurrence %d: %s", h.Rule, h.Occurrence, h.What)
	}
	t.Logf("mobulatest: %s=%d makes the same faults", chaos.EnvSeed, plan.Seed())
}

// Times of Invariant: between two checks, how long the check that is under way at the end may take, and how long the last one may wait for the
// effects of faults to end.
const (
	invariantPause    = 5 * time.Millisecond
	invariantGrace    = 5 * time.Second
	invariantPatience = time.Minute
)

// Invariant checks a condition: again and again while the test runs, in a goroutine, and once more at the end, after the faults. It fails the
// test once. The context belongs to c. An error that says that something is unavailable at the moment (ErrActorUnavailable, ErrWorkerCrashed,
// ErrDisconnected) does not break the invariant, unless it lasts a minute after the faults.
//
// Experimental: it goes with faults, which may change in any release.
func Invariant(t testing.TB, c *mobula.Cluster, check func(ctx context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithCancel(c.Context(context.WithoutCancel(t.Context())))
	broken := false
	over, stop := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for over.Err() == nil {
			if err := guarded(ctx, check); err != nil && ctx.Err() == nil && !unavailable(err) {
				broken = true
				t.Errorf("mobulatest: the invariant does not hold: %v", err)
				return
			}
			pause(over)
		}
	}()
	t.Cleanup(func() {
		stop()
		late := time.AfterFunc(invariantGrace, cancel) // what it finds by then counts
		<-done
		late.Stop()
		cancel()
		if p := fault.Current(); p != nil {
			p.Quiet()
		}
		if broken {
			return
		}
		ctx, cancel := context.WithTimeout(c.Context(context.WithoutCancel(t.Context())), invariantPatience)
		defer cancel()
		err := guarded(ctx, check)
		for unavailable(err) && ctx.Err() == nil {
			pause(ctx)
			err = guarded(ctx, check)
		}
		if err != nil {
			t.Errorf("mobulatest: the invariant does not hold at the end: %v", err)
		}
	})
}

func pause(ctx context.Context) {
	t := time.NewTimer(invariantPause)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

// guarded calls a check; a panic in it fails this test and does not end all tests.
func guarded(ctx context.Context, check func(context.Context) error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the check panicked: %v", p)
		}
	}()
	return check(ctx)
}

// unavailable tells whether an error is the effect of a fault rather than a broken invariant.
func unavailable(err error) bool {
	return errors.Is(err, mobula.ErrActorUnavailable) || errors.Is(err, mobula.ErrWorkerCrashed) || errors.Is(err, mobula.ErrDisconnected)
}
