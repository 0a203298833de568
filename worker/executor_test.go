package worker

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"mobula/internal/client"
	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/internal/registry"
	"mobula/wire"
)

func TestLaneRunsInOrderAndBatchesReports(t *testing.T) {
	p := newPeer(t, Config{})
	var order []ids.TaskID
	opts := p.handle("f", wire.TaskNormal, func(ctx context.Context, _ *registry.Call) ([]registry.Output, any, error) {
		order = append(order, client.FromContext(ctx).Task) // one lane: no race
		return out("x"), nil, nil
	})
	var ts []wire.ExecTask
	for range 200 {
		ts = append(ts, p.task(opts))
	}
	p.exec(1, ts...)
	ds := p.dones(200)
	for i, d := range ds {
		if d.Task != ts[i].Spec.ID || order[i] != d.Task {
			t.Fatalf("report %d is of another task", i)
		}
		if d.Err != nil || string(d.Results[0].Value.Data) != "x" || d.Lease != 1 || d.Attempt != 1 {
			t.Fatalf("report %d: %+v", i, d)
		}
		if d.Times.Received == 0 || d.Times.Started < d.Times.Received || d.Times.Ended < d.Times.Started {
			t.Fatalf("report %d: times %+v", i, d.Times)
		}
		if i > 0 && d.Times.Started < ds[i-1].Times.Ended {
			t.Fatalf("report %d started before the one before it ended", i)
		}
	}
}

func TestReportDoesNotWaitForALongTaskBehindIt(t *testing.T) {
	p := newPeer(t, Config{})
	f, started, goOn := hold()
	short, long := p.task(p.handle("short", wire.TaskNormal, ok)), p.task(p.handle("long", wire.TaskNormal, f))
	p.exec(1, short, long)
	<-started
	p.done(short.Spec.ID) // while the long one still runs
	close(goOn)
	p.done(long.Spec.ID)
}

func TestArguments(t *testing.T) {
	p := newPeer(t, Config{})
	copy(p.arena[100:], "stored")
	p.used = 200
	var got []string
	var kept []byte
	opts := p.handle("f", wire.TaskNormal, func(_ context.Context, c *registry.Call) ([]registry.Output, any, error) {
		got = nil
		for _, in := range c.Inputs {
			got = append(got, string(in.Value.Meta)+string(in.Value.Data))
		}
		if len(c.Inputs) > 2 {
			kept = c.Inputs[2].Value.Data
		}
		return out(""), nil, nil
	})
	ref := ids.RootTask(9, 1).Return(0)
	task := p.task(opts, wire.Arg{Value: wire.Value{Data: []byte("plain")}}, wire.Arg{Ref: ref}, wire.Arg{Ref: ref})
	task.Args = []wire.ArgValue{
		{Index: 1, Result: wire.Result{Kind: wire.ResultInline, Value: wire.Value{Data: []byte("inline")}}},
		{Index: 2, Result: wire.Result{Kind: wire.ResultStored, Size: 6, Value: wire.Value{Meta: []byte("m:")}}, Extent: wire.Extent{Off: 100, Size: 64}},
	}
	p.exec(1, task)
	if d := p.done(task.Spec.ID); d.Err != nil || strings.Join(got, " ") != "plain inline m:stored" {
		t.Fatalf("got %q, %v", got, d.Err)
	}
	if lendsCopies { // the invariants build catches a slice that is kept
		if string(kept) == "stored" {
			t.Error("a kept slice still reads well")
		}
	} else if &kept[0] != &p.arena[100] {
		t.Error("a stored argument was copied")
	}
	for name, args := range map[string][]wire.ArgValue{
		"none":    nil,
		"error":   {{Index: 0, Result: wire.Result{Kind: wire.ResultError, Err: errs.New(errs.CodeObjectLost, "gone")}}},
		"outside": {{Index: 0, Result: wire.Result{Kind: wire.ResultStored, Size: 6}, Extent: wire.Extent{Off: 1 << 30, Size: 6}}},
		"short":   {{Index: 0, Result: wire.Result{Kind: wire.ResultStored, Size: 65}, Extent: wire.Extent{Size: 64}}},
	} {
		task := p.task(opts, wire.Arg{Ref: ref})
		task.Args = args
		p.exec(1, task)
		if d := p.done(task.Spec.ID); d.Err == nil || len(d.Results) != 0 {
			t.Errorf("%s: got %+v", name, d)
		}
	}
}

func TestResults(t *testing.T) {
	p := newPeer(t, Config{})
	big := strings.Repeat("b", 4000)
	opts := p.handle("f", wire.TaskNormal, func(ctx context.Context, _ *registry.Call) ([]registry.Output, any, error) {
		tc := client.FromContext(ctx)
		own, err := tc.Client.Create(ctx, tc.Task.Return(2), 10)
		if err != nil {
			return nil, nil, err
		}
		copy(own.Bytes(), "in place..")
		other, err := tc.Client.Create(ctx, tc.NextPut(), 6)
		if err != nil {
			return nil, nil, err
		}
		copy(other.Bytes(), "copied")
		return []registry.Output{
			{Size: 5, Fill: func(dst []byte) { copy(dst, "small") }},
			{Size: len(big), Fill: func(dst []byte) { copy(dst, big) }, Meta: []byte("m")},
			{Buffer: own}, {Buffer: other},
		}, nil, nil
	})
	opts.NumReturns = 4
	task := p.task(opts)
	p.exec(1, task)
	d := p.done(task.Spec.ID)
	if d.Err != nil || len(d.Results) != 4 {
		t.Fatalf("got %+v", d)
	}
	kinds := []wire.ResultKind{wire.ResultInline, wire.ResultStored, wire.ResultStored, wire.ResultStored}
	sizes := []uint64{5, 4000, 10, 6}
	for i, r := range d.Results {
		if r.Kind != kinds[i] || r.Size != sizes[i] {
			t.Errorf("result %d: %+v", i, r)
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if seals := of[*wire.Seal](p.log); len(seals) != 3 || seals[0].ID != task.Spec.ID.Return(1) || seals[0].Attempt != 1 || string(seals[0].Value.Meta) != "m" {
		t.Errorf("seals: %+v", seals)
	}
	if aborts := of[*wire.Abort](p.log); len(aborts) != 1 || !aborts[0].ID.IsPut() {
		t.Errorf("aborts: %+v", aborts) // of the buffer that was copied
	}
	if !strings.Contains(string(p.arena[:p.used]), big) || !strings.Contains(string(p.arena[:p.used]), "in place..") {
		t.Error("the bytes are not in the segment")
	}
}

func TestFailures(t *testing.T) {
	p := newPeer(t, Config{})
	cause := fmt.Errorf("reading: %w", errs.ErrNotFound)
	for name, c := range map[string]struct {
		f    body
		want error
		text string
	}{
		"error":       {func(context.Context, *registry.Call) ([]registry.Output, any, error) { return nil, nil, cause }, errs.ErrNotFound, "reading"},
		"panic":       {func(context.Context, *registry.Call) ([]registry.Output, any, error) { panic("boom") }, errs.ErrPanic, "boom"},
		"panic error": {func(context.Context, *registry.Call) ([]registry.Output, any, error) { panic(cause) }, errs.ErrNotFound, "reading"},
		"goexit": {func(context.Context, *registry.Call) ([]registry.Output, any, error) {
			runtime.Goexit()
			return nil, nil, nil
		}, errs.ErrPanic, "Goexit"},
		"too many": {func(context.Context, *registry.Call) ([]registry.Output, any, error) { return nil, nil, nil }, errs.ErrReturnMismatch, "0 results"},
		"too large": {func(context.Context, *registry.Call) ([]registry.Output, any, error) {
			return []registry.Output{{Size: 2 << 20, Fill: func([]byte) {}}}, nil, nil
		}, errs.ErrObjectTooLarge, "limit"},
		"fill panics": {func(context.Context, *registry.Call) ([]registry.Output, any, error) {
			return []registry.Output{{Size: 5000, Fill: func([]byte) { panic("cannot encode") }}}, nil, nil
		}, errs.ErrPanic, "cannot encode"},
		"meta": {func(context.Context, *registry.Call) ([]registry.Output, any, error) {
			return []registry.Output{{Meta: make([]byte, wire.MaxMeta+1)}}, nil, nil
		}, errs.ErrNotEncodable, "layout"},
	} {
		t.Run(name, func(t *testing.T) {
			bad, good := p.task(p.handle(name, wire.TaskNormal, c.f)), p.task(p.handle("ok", wire.TaskNormal, ok))
			p.exec(1, bad, good)
			d := p.done(bad.Spec.ID)
			if d.Err == nil || !errors.Is(d.Err, errs.ErrTaskFailed) || !errors.Is(d.Err, c.want) || !strings.Contains(d.Err.Error(), c.text) {
				t.Fatalf("got %v", d.Err)
			}
			if d.Err.Name != name || d.Err.Task != bad.Spec.ID.String() || len(d.Results) != 0 {
				t.Errorf("the report does not say where: %+v", d.Err)
			}
			if name == "panic" && !strings.Contains(d.Err.Stack, "TestFailures") {
				t.Errorf("the stack does not lead to the function: %s", d.Err.Stack)
			}
			if d := p.done(good.Spec.ID); d.Err != nil {
				t.Errorf("the task behind it failed too: %v", d.Err)
			}
		})
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if n := len(of[*wire.Abort](p.log)); n != 1 { // what could not be written is given back; what was refused was never held
		t.Errorf("%d aborts", n)
	}
}

func TestUnknownFunctionAndKind(t *testing.T) {
	p := newPeer(t, Config{})
	p.handle("actor", wire.TaskActorCreate, ok)
	for name, want := range map[string]error{"nowhere": errs.ErrUnknownFunction, "actor": errs.ErrRegistryMismatch} {
		task := p.task(&wire.TaskOptions{Func: name, NumReturns: 1})
		p.exec(1, task)
		if d := p.done(task.Spec.ID); !errors.Is(d.Err, want) {
			t.Errorf("%s: got %v", name, d.Err)
		}
	}
}

func TestCancel(t *testing.T) {
	p := newPeer(t, Config{})
	f, started, goOn := hold()
	opts := p.handle("hold", wire.TaskNormal, f)
	running, queued, last := p.task(opts), p.task(opts), p.task(opts)
	p.exec(1, running, queued, last)
	<-started
	p.e.Deliver([]wire.Msg{&wire.CancelTask{Task: queued.Spec.ID}, &wire.CancelTask{Task: running.Spec.ID}})
	for _, task := range []wire.ExecTask{queued, running} {
		if d := p.done(task.Spec.ID); !errors.Is(d.Err, errs.ErrCancelled) || d.Err.Code != errs.CodeCancelled {
			t.Errorf("got %v", d.Err)
		}
	}
	if id := <-started; id != last.Spec.ID.String() {
		t.Errorf("%v started, it was cancelled in the queue", id)
	}
	close(goOn)
	if d := p.done(last.Spec.ID); d.Err != nil {
		t.Error(d.Err)
	}
}

func TestAbandonReplacesTheGoroutine(t *testing.T) {
	p := newPeer(t, Config{})
	stuck, entered := make(chan struct{}), make(chan struct{})
	opts := p.handle("stuck", wire.TaskNormal, func(context.Context, *registry.Call) ([]registry.Output, any, error) {
		close(entered)
		<-stuck
		return out("late"), nil, nil
	})
	bad, next := p.task(opts), p.task(p.handle("ok", wire.TaskNormal, ok))
	p.exec(1, bad, next)
	<-entered
	p.e.Deliver([]wire.Msg{&wire.CancelTask{Task: bad.Spec.ID, Abandon: true}})
	if d := p.done(bad.Spec.ID); !errors.Is(d.Err, errs.ErrCancelled) {
		t.Errorf("got %v", d.Err)
	}
	if d := p.done(next.Spec.ID); d.Err != nil {
		t.Errorf("the lane does not go on: %v", d.Err)
	}
	var h wire.Holdings
	if p.e.Holdings(&h); len(h.Tasks) != 1 || h.Tasks[0].Task != bad.Spec.ID {
		t.Errorf("while the abandoned task runs the worker has %+v", h.Tasks)
	}
	close(stuck)
	p.returned(bad.Spec.ID)
	more := p.task(opts2(p))
	p.exec(1, more)
	p.done(more.Spec.ID)
	p.mu.Lock()
	defer p.mu.Unlock()
	if n := len(of[*wire.Done](p.log)); n != 4 {
		t.Errorf("%d reports of three tasks, one of them abandoned", n)
	}
}

// A task may be abandoned at any moment of its life.
func TestAbandonAtAnyMoment(t *testing.T) {
	p := newPeer(t, Config{})
	opts := p.handle("ok", wire.TaskNormal, ok)
	for range 300 {
		task := p.task(opts)
		p.exec(1, task)
		p.e.Deliver([]wire.Msg{&wire.CancelTask{Task: task.Spec.ID, Abandon: true}})
		last := p.task(opts)
		p.exec(1, last)
		if d := p.done(last.Spec.ID); d.Err != nil {
			t.Fatal(d.Err)
		}
	}
}

func opts2(p *peer) *wire.TaskOptions { return p.handle("ok2", wire.TaskNormal, ok) }

func TestDeadline(t *testing.T) {
	p := newPeer(t, Config{})
	f, started, _ := hold()
	opts := p.handle("hold", wire.TaskNormal, f)
	late, slow := p.task(opts), p.task(opts)
	late.Spec.Deadline = 1
	slow.Spec.Deadline = time.Now().Add(20 * time.Millisecond).UnixNano()
	p.exec(1, late, slow)
	if id := <-started; id != slow.Spec.ID.String() {
		t.Error("a task whose deadline had passed was started")
	}
	for _, task := range []wire.ExecTask{late, slow} {
		if d := p.done(task.Spec.ID); d.Err.Code != errs.CodeDeadline || !errors.Is(d.Err, context.DeadlineExceeded) {
			t.Errorf("got %v", d.Err)
		}
	}
}

func TestContextOfATask(t *testing.T) {
	p := newPeer(t, Config{})
	var kept, derived context.Context
	opts := p.handle("f", wire.TaskNormal, func(ctx context.Context, _ *registry.Call) ([]registry.Output, any, error) {
		kept = ctx
		if ctx.Err() != nil || context.Cause(ctx) != nil {
			return nil, nil, errors.New("over before it began")
		}
		var cancel context.CancelFunc
		derived, cancel = context.WithTimeout(ctx, time.Hour)
		_ = cancel // the end of the task must do it
		return out(""), nil, nil
	})
	task := p.task(opts)
	p.exec(1, task)
	if d := p.done(task.Spec.ID); d.Err != nil {
		t.Fatal(d.Err)
	}
	<-kept.Done()
	<-derived.Done()
	if !errors.Is(context.Cause(derived), errs.ErrCancelled) || derived.Err() != context.Canceled {
		t.Errorf("cause %v, err %v", context.Cause(derived), derived.Err())
	}
}

func TestDrainWaitsForTheLastReport(t *testing.T) {
	p := newPeer(t, Config{})
	f, started, goOn := hold()
	task := p.task(p.handle("hold", wire.TaskNormal, f))
	p.exec(1, task)
	<-started
	p.e.Deliver([]wire.Msg{&wire.Drain{}})
	select {
	case <-p.e.Drained():
		t.Fatal("drained while a task runs")
	default:
	}
	close(goOn)
	<-p.e.Drained()
	p.done(task.Spec.ID)
}

func TestResyncTellsWhatIsHeld(t *testing.T) {
	inBothWays(t, func(t *testing.T, cfg Config) {
		p := newPeer(t, cfg)
		f, started, goOn := hold()
		opts := p.handle("hold", wire.TaskNormal, f)
		a := p.create(2, p.handle("actor", wire.TaskActorCreate, func(context.Context, *registry.Call) ([]registry.Output, any, error) {
			return out(""), new(int), nil
		}))
		running, queued := p.task(opts), p.task(opts)
		p.exec(1, running, queued)
		<-started
		p.e.Deliver([]wire.Msg{&wire.Resync{Component: wire.ComponentOwner, Epoch: 4}})
		h := await(p, "Holdings", func(log []wire.Msg) (*wire.Holdings, bool) {
			hs := of[*wire.Holdings](log)
			if len(hs) == 0 {
				return nil, false
			}
			return hs[0], true
		})
		want := []wire.Attempt{{Task: running.Spec.ID, Attempt: 1, Lease: 1}, {Task: queued.Spec.ID, Attempt: 1, Lease: 1}}
		// The runner of the creation may not have noted yet that its report is sent, which the owner has before this then.
		h.Tasks = slices.DeleteFunc(h.Tasks, func(at wire.Attempt) bool { return at.Task == ids.TaskID(a) })
		if h.Epoch != 4 || fmt.Sprint(h.Tasks) != fmt.Sprint(want) || fmt.Sprint(h.Actors) != fmt.Sprint([]ids.ActorID{a}) {
			t.Errorf("got %+v", h)
		}
		close(goOn)
		p.done(queued.Spec.ID)
	})
}
