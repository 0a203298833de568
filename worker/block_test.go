package worker

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"mobula/internal/client"
	"mobula/internal/ids"
	"mobula/internal/registry"
	"mobula/internal/testkit"
	"mobula/wire"
)

// getter is a function that waits for one object in several goroutines.
func (p *peer) getter(goroutines int, h func() *client.Handle) *wire.TaskOptions {
	return p.handle("getter", wire.TaskNormal, func(ctx context.Context, _ *registry.Call) ([]registry.Output, any, error) {
		var wg sync.WaitGroup
		errs := make(chan error, goroutines)
		for range goroutines {
			wg.Go(func() {
				_, err := p.c.Get1(ctx, h())
				errs <- err
			})
		}
		wg.Wait()
		return out("got"), nil, <-errs
	})
}

func (p *peer) object() *client.Handle {
	p.t.Helper()
	root := p.c.Root()
	hs, err := p.c.Submit(p.t.Context(), &wire.TaskSpec{ID: root.NextTask(), Opts: &wire.TaskOptions{NumReturns: 1}})
	if err != nil {
		p.t.Fatal(err)
	}
	return hs[0]
}

func (p *peer) resolve(id ids.ObjectID) {
	p.e.Deliver([]wire.Msg{&wire.Resolved{ID: id, Fetch: true, Result: wire.Result{Kind: wire.ResultInline, Value: wire.Value{Data: []byte("v")}, Size: 1}}})
}

func TestBlockedTaskGivesItsQueueBack(t *testing.T) {
	p := newPeer(t, Config{})
	h := p.object()
	opts := p.getter(3, func() *client.Handle { return h })
	first := p.task(p.handle("ok", wire.TaskNormal, ok))
	waits, a, b := p.task(opts), p.task(opts), p.task(opts)
	p.exec(7, first, waits, a, b)
	m := await(p, "Blocked", func(log []wire.Msg) (*wire.Blocked, bool) {
		ms := of[*wire.Blocked](log)
		if len(ms) == 0 {
			return nil, false
		}
		return ms[0], true
	})
	want := fmt.Sprint([]ids.TaskID{a.Spec.ID, b.Spec.ID})
	if m.Task != waits.Spec.ID || m.Lease != 7 || fmt.Sprint(m.Returned) != want {
		t.Fatalf("got %+v, want %s returned", m, want)
	}
	p.done(first.Spec.ID) // reports do not wait behind a blocked task
	p.resolve(h.ID())
	await(p, "Unblocked", func(log []wire.Msg) (int, bool) { return 0, len(of[*wire.Unblocked](log)) >= 1 })
	p.mu.Lock()
	done := len(of[*wire.Done](p.log))
	p.mu.Unlock()
	if done != 1 {
		t.Fatal("the task ran on before it had its CPU back")
	}
	for resumed := 0; ; resumed++ { // stragglers may block once more after a Resume
		d := await(p, "Unblocked or Done", func(log []wire.Msg) (*wire.Done, bool) {
			for _, d := range of[*wire.Done](log) {
				if d.Task == waits.Spec.ID {
					return d, true
				}
			}
			return nil, len(of[*wire.Unblocked](log)) > resumed
		})
		if d != nil {
			if d.Err != nil {
				t.Fatal(d.Err)
			}
			break
		}
		p.e.Deliver([]wire.Msg{&wire.Resume{Task: waits.Spec.ID}})
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, blocked := 0, 0; i < len(p.log); i++ {
		switch p.log[i].(type) {
		case *wire.Blocked:
			blocked++
		case *wire.Unblocked:
			blocked--
		}
		if blocked < 0 || blocked > 1 {
			t.Fatal("Blocked and Unblocked do not alternate")
		}
	}
}

// Tasks on their way to a lease that gave its CPU back come back too: the lease's task may wait for one of them.
func TestTasksPushedToABlockedLeaseComeBack(t *testing.T) {
	p := newPeer(t, Config{})
	h := p.object()
	waits := p.task(p.getter(1, func() *client.Handle { return h }))
	late := p.task(p.handle("ok", wire.TaskNormal, ok))
	p.exec(7, waits)
	await(p, "Blocked", func(log []wire.Msg) (int, bool) { return 0, len(of[*wire.Blocked](log)) == 1 })
	p.exec(7, late)
	m := await(p, "the late task back", func(log []wire.Msg) (*wire.Blocked, bool) {
		ms := of[*wire.Blocked](log)
		return ms[len(ms)-1], len(ms) == 2
	})
	if !m.Task.IsZero() || m.Lease != 7 || len(m.Returned) != 1 || m.Returned[0] != late.Spec.ID {
		t.Fatalf("got %+v, want only %v returned", m, late.Spec.ID)
	}
	p.resolve(h.ID())
	await(p, "Unblocked", func(log []wire.Msg) (int, bool) { return 0, len(of[*wire.Unblocked](log)) == 1 })
	p.e.Deliver([]wire.Msg{&wire.Resume{Task: waits.Spec.ID}})
	p.done(waits.Spec.ID)
	p.exec(7, late)
	p.done(late.Spec.ID)
}

func TestGoroutineThatBlocksWhileAnotherResumes(t *testing.T) {
	p := newPeer(t, Config{})
	cl := newCall(newLane(p.e, 1, nil), 1, 0, false)
	cl.ctx.cfg, cl.ctx.tc = based(t.Context()), &cl.tc
	cl.Blocked(t.Context(), nil)
	back := make(chan struct{})
	go func() { cl.Unblocked(t.Context()); close(back) }()
	await(p, "Unblocked", func(log []wire.Msg) (int, bool) { return 0, len(of[*wire.Unblocked](log)) == 1 })
	cl.Blocked(t.Context(), nil) // not sent: the CPU is not back
	p.e.Deliver([]wire.Msg{&wire.Resume{}})
	<-back
	await(p, "Blocked again", func(log []wire.Msg) (int, bool) { return 0, len(of[*wire.Blocked](log)) == 2 })
	go cl.Unblocked(t.Context())
	await(p, "Unblocked again", func(log []wire.Msg) (int, bool) { return 0, len(of[*wire.Unblocked](log)) == 2 })
	cl.block.over(cl) // the end of the call lets everyone go
	if len(p.e.waiting) != 0 {
		t.Error("the call is still listed as blocked")
	}
}

func TestGetTimeoutStillWaitsForTheCPU(t *testing.T) {
	p := newPeer(t, Config{})
	h := p.object()
	opts := p.handle("impatient", wire.TaskNormal, func(ctx context.Context, _ *registry.Call) ([]registry.Output, any, error) {
		short, cancel := context.WithTimeout(ctx, time.Millisecond)
		defer cancel()
		if _, err := p.c.Get1(short, h); err == nil {
			t.Error("a value came from nowhere")
		}
		return out(""), nil, nil
	})
	task := p.task(opts)
	p.exec(1, task)
	await(p, "Unblocked", func(log []wire.Msg) (int, bool) { return 0, len(of[*wire.Unblocked](log)) == 1 })
	p.mu.Lock()
	if len(of[*wire.Done](p.log)) != 0 {
		t.Error("the task ran on before it had its CPU back")
	}
	p.mu.Unlock()
	p.e.Deliver([]wire.Msg{&wire.Resume{Task: task.Spec.ID}})
	p.done(task.Spec.ID)
}

// A worker's answer to Resync includes tasks that it is giving back. The message that gives them back comes after the answer; else it
// could mean tasks that the node has pushed here again.
func TestANodeThatAsksWhileTasksGoBackIsToldOfThem(t *testing.T) {
	p := newPeer(t, Config{})
	h := p.object()
	waits := p.task(p.getter(1, func() *client.Handle { return h }))
	behind := p.task(p.handle("ok", wire.TaskNormal, ok))
	var told wire.Holdings
	p.mu.Lock()
	p.sends = func(msgs []wire.Msg) {
		if len(of[*wire.Blocked](msgs)) > 0 {
			p.e.Holdings(&told)
		}
	}
	p.mu.Unlock()
	p.exec(7, waits, behind)
	await(p, "Blocked", func(log []wire.Msg) (int, bool) { return 0, len(of[*wire.Blocked](log)) == 1 })
	p.mu.Lock()
	p.sends = nil
	p.mu.Unlock()
	if len(told.Tasks) != 2 || told.Tasks[1].Task != behind.Spec.ID || told.Tasks[1].Lease != 7 {
		t.Errorf("the node is told of %+v", told.Tasks)
	}
	if w := told.Tasks[0]; !w.Blocked || w.Asks || told.Tasks[1].Blocked {
		t.Errorf("before it goes on the node is told of %+v", told.Tasks)
	}
	p.resolve(h.ID())
	await(p, "Unblocked", func(log []wire.Msg) (int, bool) { return 0, len(of[*wire.Unblocked](log)) == 1 })
	var asks wire.Holdings
	if p.e.Holdings(&asks); len(asks.Tasks) != 1 || !asks.Tasks[0].Blocked || !asks.Tasks[0].Asks {
		t.Errorf("while it asks for its CPU the node is told of %+v", asks.Tasks)
	}
	p.e.Deliver([]wire.Msg{&wire.Resume{Task: waits.Spec.ID}})
	p.done(waits.Spec.ID)
	testkit.Eventually(t, "it has nothing any more", func() bool { // a report is among the holdings until its sender is back from sending it
		var after wire.Holdings
		p.e.Holdings(&after)
		return len(after.Tasks) == 0
	})
}
