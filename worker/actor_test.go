package worker

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"mobula/internal/client"
	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/internal/registry"
	"mobula/wire"
)

// counter is a test's actor.
type counter struct {
	n       int
	stopped chan struct{}
	panics  bool
}

func (c *counter) Stop(context.Context) error {
	close(c.stopped)
	if c.panics {
		panic("in stop")
	}
	return nil
}

func (p *peer) counter(c *counter) *wire.TaskOptions {
	return p.handle("counter", wire.TaskActorCreate, func(context.Context, *registry.Call) ([]registry.Output, any, error) {
		return out(""), c, nil
	})
}

func TestActorCallsRunInOrderOneAtATime(t *testing.T) {
	p := newPeer(t, Config{})
	a := p.create(1, p.counter(&counter{stopped: make(chan struct{})}))
	var inside atomic.Int32
	var order []ids.TaskID
	inc := p.handle("inc", wire.TaskActorCall, func(ctx context.Context, c *registry.Call) ([]registry.Output, any, error) {
		if inside.Add(1) != 1 {
			t.Error("two calls at once")
		}
		defer inside.Add(-1)
		i := c.Instance.(*counter)
		i.n++
		order = append(order, client.FromContext(ctx).Task)
		if i.n == 500 {
			panic("one call of many")
		}
		return out("ok"), nil, nil
	})
	var ts []wire.ExecTask
	for range 1000 {
		ts = append(ts, p.call(a, inc))
	}
	p.exec(1, ts[:400]...)
	p.exec(1, ts[400:]...)
	ds := p.dones(1001)[1:] // the first is the creation's
	for i := range ts {
		if order[i] != ts[i].Spec.ID {
			t.Fatalf("call %d ran out of order", i)
		}
		if failed := ds[i].Err != nil; failed != (i == 499) {
			t.Errorf("call %d: %v", i, ds[i].Err)
		}
	}
}

func TestConcurrencyAndGroups(t *testing.T) {
	p := newPeer(t, Config{})
	opts := p.counter(&counter{stopped: make(chan struct{})})
	opts.MaxConcurrency = 4
	opts.Groups = []wire.ConcurrencyGroup{{Name: "io", Max: 2}}
	a := p.create(1, opts)
	f, started, goOn := hold()
	slow := p.handle("slow", wire.TaskActorCall, f)
	io := *slow
	io.Group = "io"
	none := *slow
	none.Group = "none"
	var ts []wire.ExecTask
	for range 6 {
		ts = append(ts, p.call(a, slow), p.call(a, &io))
	}
	p.exec(1, ts...)
	for range 4 + 2 {
		<-started
	}
	select {
	case <-started:
		t.Error("more calls run than the groups allow")
	default:
	}
	wrong := p.call(a, &none)
	p.exec(1, wrong)
	if d := p.done(wrong.Spec.ID); !errors.Is(d.Err, errs.ErrInvalid) {
		t.Errorf("an unknown group gave %v", d.Err)
	}
	close(goOn)
	for _, task := range ts {
		if d := p.done(task.Spec.ID); d.Err != nil {
			t.Error(d.Err)
		}
	}
}

func TestCallsWaitForTheCreation(t *testing.T) {
	p := newPeer(t, Config{})
	goOn, fail := make(chan struct{}), atomic.Bool{}
	opts := p.handle("slow actor", wire.TaskActorCreate, func(context.Context, *registry.Call) ([]registry.Output, any, error) {
		<-goOn
		if fail.Load() {
			return nil, nil, errors.New("no luck")
		}
		return out(""), new(counter), nil
	})
	for _, failing := range []bool{false, true} {
		fail.Store(failing)
		create := p.task(opts)
		create.Spec.Kind = wire.TaskActorCreate
		call := p.call(ids.ActorID(create.Spec.ID), p.handle("m", wire.TaskActorCall, ok))
		p.exec(1, create)
		p.exec(1, call)
		goOn <- struct{}{}
		cd, d := p.done(create.Spec.ID), p.done(call.Spec.ID)
		if failing != is(d.Err, errs.ErrActorDied) || failing != is(cd.Err, errs.ErrTaskFailed) {
			t.Errorf("failing %v: creation %v, call %v", failing, cd.Err, d.Err)
		}
		if failing {
			after := p.call(ids.ActorID(create.Spec.ID), p.handle("m", wire.TaskActorCall, ok))
			p.exec(1, after)
			if d := p.done(after.Spec.ID); !errors.Is(d.Err, errs.ErrActorUnavailable) {
				t.Errorf("a call after the failure gave %v", d.Err)
			}
		}
	}
}

func TestStopActor(t *testing.T) {
	for _, panics := range []bool{false, true} {
		restarts := panics
		want := errs.CodeActorDied
		if restarts {
			want = errs.CodeActorUnavailable
		}
		p := newPeer(t, Config{})
		c := &counter{stopped: make(chan struct{}), panics: panics}
		a := p.create(1, p.counter(c))
		f, started, _ := hold()
		slow := p.handle("slow", wire.TaskActorCall, f)
		running, queued := p.call(a, slow), p.call(a, slow)
		p.exec(1, running, queued)
		<-started
		p.e.Deliver([]wire.Msg{&wire.StopActor{Actor: a, Restarts: restarts}})
		for _, task := range []wire.ExecTask{running, queued} {
			d := p.done(task.Spec.ID)
			if d.Err == nil || d.Err.Code != want || errors.Is(d.Err, errs.ErrActorDied) && errors.Is(d.Err, errs.ErrActorUnavailable) {
				t.Errorf("restarts %v: got %v", restarts, d.Err)
			}
		}
		<-c.stopped // after the running call has returned
		after := p.call(a, slow)
		p.exec(1, after)
		if d := p.done(after.Spec.ID); !errors.Is(d.Err, errs.ErrActorUnavailable) {
			t.Errorf("a call after the stop gave %v", d.Err)
		}
	}
}

func TestCloseStopsActors(t *testing.T) {
	p := newPeer(t, Config{})
	c := &counter{stopped: make(chan struct{})}
	p.create(1, p.counter(c))
	if err := p.e.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	<-c.stopped
}

func is(e *errs.Error, want error) bool { return e != nil && errors.Is(e, want) }
