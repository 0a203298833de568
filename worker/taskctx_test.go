package worker

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"mobula/internal/client"
	"mobula/internal/errs"
	"mobula/internal/registry"
	"mobula/internal/steady"
	"mobula/wire"
)

func based(base context.Context) *Config { return &Config{Base: base, returned: returned(base)} }

// A deadline costs nothing until somebody asks for it, and still holds.
func TestDeadlineIsWatchedWhenAskedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		at := time.Now().Add(time.Second)
		tc := client.New(client.Config{Welcome: &wire.Welcome{}}).Root()
		fresh := func() *taskCtx {
			return &taskCtx{cfg: based(context.Background()), tc: tc, deadline: tc.Client.At(at)}
		}
		asked, derived, looked := fresh(), fresh(), fresh()
		for _, c := range []*taskCtx{asked, derived, looked} {
			if d, ok := c.Deadline(); !ok || !d.Equal(at) || c.Err() != nil || c.Value(client.TaskKey) != c.tc {
				t.Errorf("deadline %v, %v; err %v", d, ok, c.Err())
			}
			if c.inner.Load() != nil {
				t.Fatal("a context was made that nobody asked for")
			}
		}
		done := asked.Done()
		child, cancel := context.WithCancel(derived)
		defer cancel()
		time.Sleep(time.Second) // the bubble's clock
		<-done
		<-child.Done()
		for _, c := range []*taskCtx{asked, derived, looked} {
			if c.Err() != context.DeadlineExceeded || !errors.Is(context.Cause(c), errs.ErrDeadline) {
				t.Errorf("after the deadline: %v because of %v", c.Err(), context.Cause(c))
			}
			c.end()
		}

		sooner, stop := context.WithDeadline(context.Background(), time.Now().Add(time.Minute))
		defer stop()
		c := &taskCtx{cfg: based(sooner), tc: tc, deadline: tc.Client.At(time.Now().Add(time.Hour))}
		if d, ok := c.Deadline(); !ok || time.Until(d) != time.Minute {
			t.Errorf("the earlier of two deadlines is not told: %v", time.Until(d))
		}
	})
}

// A task that fails after its deadline, and never looked at its context, failed for it.
func TestErrorAfterTheDeadlineIsTheDeadlines(t *testing.T) {
	p := newPeer(t, Config{})
	at := time.Now().Add(30 * time.Millisecond)
	task := p.task(p.handle("late", wire.TaskNormal, func(context.Context, *registry.Call) ([]registry.Output, any, error) {
		<-time.After(time.Until(at) + time.Millisecond)
		return nil, nil, errors.New("too slow")
	}))
	task.Spec.Deadline = p.c.At(at)
	p.exec(1, task)
	if d := p.done(task.Spec.ID); d.Err == nil || d.Err.Code != errs.CodeDeadline {
		t.Errorf("got %v", d.Err)
	}
}

// The node's clock is an hour behind this process' wall clock, which somebody has set since: a deadline is as far away as the node says.
func TestADeadlineIsByTheNodesClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		node := steady.New()
		c := client.New(client.Config{Welcome: &wire.Welcome{Clock: node.Offset() - int64(time.Hour)}})
		at := time.Now().Add(time.Minute)
		spec := c.At(at)
		if away := time.Duration(spec - c.Now()); away != time.Minute {
			t.Errorf("sent as %v away", away)
		}
		task := &taskCtx{cfg: based(context.Background()), tc: c.Root(), deadline: spec}
		if got, ok := task.Deadline(); !ok || !got.Equal(at) || task.Err() != nil {
			t.Errorf("deadline %v, want %v; %v", got, at, task.Err())
		}
	})
}

// A context is over when its task has returned, whether its code has looked at it before or not, and still says whose it was and until when it could run.
func TestAContextIsOverWhenItsTaskHasReturned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		type key struct{}
		tc := client.New(client.Config{Welcome: &wire.Welcome{}}).Root()
		base := based(context.WithValue(t.Context(), key{}, "base"))
		at := time.Now().Add(time.Minute)
		fresh := func() *taskCtx { return &taskCtx{cfg: base, tc: tc, deadline: tc.Client.At(at)} }
		kept, derived, racing := fresh(), fresh(), fresh()
		child, cancel := context.WithCancel(derived)
		defer cancel()
		go racing.end()
		<-racing.Done()
		kept.end()
		derived.end()
		for _, c := range []*taskCtx{kept, derived, racing} {
			d, ok := c.Deadline()
			if <-c.Done(); c.Err() != context.Canceled || context.Cause(c) != errReturned || !ok || !d.Equal(at) || c.Value(key{}) != "base" || c.Value(client.TaskKey) != tc {
				t.Errorf("of a task that has returned: %v because of %v, until %v, %v, of %v", c.Err(), context.Cause(c), d, ok, c.Value(key{}))
			}
			c.cancel(errors.New("too late"))
		}
		if <-child.Done(); context.Cause(child) != errReturned || base.Base.Err() != nil {
			t.Errorf("what was derived has ended because of %v", context.Cause(child))
		}
	})
}
