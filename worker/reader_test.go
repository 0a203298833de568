package worker

import (
	"context"
	"errors"
	"io"
	"runtime"
	"strings"
	"testing"
	"time"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/internal/registry"
	"mobula/internal/testkit"
	"mobula/wire"
)

// reading gives a peer's executor a reader, which reads the messages that the test feeds.
func reading(t *testing.T) (p *peer, feed func(...wire.Msg)) {
	p = newPeer(t, Config{})
	in := make(chan []wire.Msg, 100)
	rd := newReader(p.e, func() ([]wire.Msg, error) {
		if b, ok := <-in; ok {
			return b, nil
		}
		return nil, io.EOF
	})
	p.e.reader = rd
	go rd.loop()
	t.Cleanup(func() {
		close(in)
		<-rd.over
		if rd.err != nil {
			t.Errorf("a clean end is told as %v", rd.err)
		}
	})
	return p, func(m ...wire.Msg) { in <- m }
}

// eager waits until the lane of lease 1 has nothing to do, and makes its tasks short ones.
func eager(t *testing.T, p *peer, feed func(...wire.Msg)) {
	t.Helper()
	first := p.task(p.handle("ok", wire.TaskNormal, ok))
	feed(&wire.Exec{Lease: 1, Tasks: []wire.ExecTask{first}})
	p.done(first.Spec.ID)
	again(t, p)
}

func again(t *testing.T, p *peer) {
	t.Helper()
	l := p.e.lane(1)
	for end := time.Now().Add(testkit.Patience()); ; runtime.Gosched() {
		l.mu.Lock()
		idle := l.parked == 1 && p.e.pending.Load() == 0
		if idle {
			l.quick = quickRuns
		}
		l.mu.Unlock()
		if idle {
			return
		}
		if time.Now().After(end) {
			t.Fatal("the lane does not come to rest")
		}
	}
}

// onReader tells whether its caller's caller is run by the reader.
func onReader() bool {
	buf := make([]byte, 1<<16)
	return strings.Contains(string(buf[:runtime.Stack(buf, false)]), "(*reader).run")
}

func where(_ context.Context, _ *registry.Call) ([]registry.Output, any, error) {
	if onReader() {
		return out("reader"), nil, nil
	}
	return out("runner"), nil, nil
}

func (p *peer) place(task ids.TaskID) string {
	p.t.Helper()
	d := p.done(task)
	if d.Err != nil {
		p.t.Fatalf("task %v: %v", task, d.Err)
	}
	return string(d.Results[0].Value.Data)
}

func TestReaderRunsALoneShortTask(t *testing.T) {
	p, feed := reading(t)
	opts := p.handle("where", wire.TaskNormal, where)
	first := p.task(opts)
	feed(&wire.Exec{Lease: 1, Tasks: []wire.ExecTask{first}})
	if got := p.place(first.Spec.ID); got != "runner" {
		t.Errorf("a task of which nothing is known ran on the %s", got)
	}
	for range 3 {
		again(t, p)
		alone := p.task(opts)
		feed(&wire.Exec{Lease: 1, Tasks: []wire.ExecTask{alone}})
		if got := p.place(alone.Spec.ID); got != "reader" {
			t.Errorf("a short task alone ran on the %s", got)
		}
	}
	for name, tasks := range map[string][]wire.ExecTask{"two of one lane": {p.task(opts), p.task(opts)}} {
		again(t, p)
		feed(&wire.Exec{Lease: 1, Tasks: tasks})
		for _, task := range tasks {
			if got := p.place(task.Spec.ID); got != "runner" {
				t.Errorf("%s: ran on the %s", name, got)
			}
		}
	}
	again(t, p)
	a, b := p.task(opts), p.task(opts)
	feed(&wire.Exec{Lease: 1, Tasks: []wire.ExecTask{a}}, &wire.Exec{Lease: 2, Tasks: []wire.ExecTask{b}})
	if one, two := p.place(a.Spec.ID), p.place(b.Spec.ID); one != "runner" || two != "runner" {
		t.Errorf("tasks of two lanes ran on the %s and the %s", one, two)
	}
}

func TestLongTasksAreNotForTheReader(t *testing.T) {
	p := newPeer(t, Config{})
	l := p.e.lane(1)
	for _, c := range []struct {
		took []time.Duration
		want bool
	}{
		{[]time.Duration{1, 1}, false},
		{[]time.Duration{1, 1, 1}, true},
		{[]time.Duration{quickTask, 1, 1}, false},
		{[]time.Duration{1, 1, 1}, true},
		{[]time.Duration{readerTick, 1, 1, 1, 1, 1}, false},
	} {
		for _, d := range c.took {
			l.mu.Lock()
			l.tookLocked(d)
			l.mu.Unlock()
		}
		if got := l.quick >= quickRuns; got != c.want {
			t.Errorf("after %v: for the reader %v, want %v", c.took, got, c.want)
		}
	}
}

// A task on the reader that waits for the node: another goroutine reads the answer, at once.
func TestReaderIsRelievedWhenItsTaskWaits(t *testing.T) {
	p, feed := reading(t)
	p.e.reader.watching.Store(true) // nobody watches
	eager(t, p, feed)
	id := ids.RootTask(9, 77).Return(0)
	var place string
	waits := p.task(p.handle("waits", wire.TaskNormal, func(ctx context.Context, _ *registry.Call) ([]registry.Output, any, error) {
		if place = "runner"; onReader() {
			place = "reader"
		}
		d, err := p.c.Get1(ctx, p.c.Bind(id))
		return out(string(d.Value.Data)), nil, err
	}))
	feed(&wire.Exec{Lease: 1, Tasks: []wire.ExecTask{waits}})
	await(p, "Get", func(log []wire.Msg) (*wire.Get, bool) { g := of[*wire.Get](log); return nil, len(g) == 1 })
	await(p, "Blocked", func(log []wire.Msg) (*wire.Blocked, bool) { b := of[*wire.Blocked](log); return nil, len(b) == 1 })
	feed(&wire.Resolved{ID: id, Fetch: true, Result: wire.Result{Kind: wire.ResultInline, Value: wire.Value{Data: []byte("it")}, Size: 2}})
	await(p, "Unblocked", func(log []wire.Msg) (*wire.Unblocked, bool) { u := of[*wire.Unblocked](log); return nil, len(u) == 1 })
	feed(&wire.Resume{Task: waits.Spec.ID})
	if d := p.done(waits.Spec.ID); d.Err != nil || string(d.Results[0].Value.Data) != "it" {
		t.Errorf("got %+v", d)
	}
	if place != "reader" {
		t.Errorf("the task ran on the %s", place)
	}
	// A task that waits for room in the store does not report that it is blocked; another goroutine reads then
	// too.
	again(t, p)
	large := p.task(p.handle("large", wire.TaskNormal, func(context.Context, *registry.Call) ([]registry.Output, any, error) {
		return []registry.Output{{Size: 5000, Fill: func(b []byte) { clear(b) }}}, nil, nil
	}))
	feed(&wire.Exec{Lease: 1, Tasks: []wire.ExecTask{large}})
	if d := p.done(large.Spec.ID); d.Err != nil || d.Results[0].Kind != wire.ResultStored {
		t.Errorf("got %+v", d)
	}
}

// A task on the reader takes long and does not wait: the watcher lets another goroutine read.
func TestReaderIsRelievedOfALongTask(t *testing.T) {
	p, feed := reading(t)
	eager(t, p, feed)
	f, started, _ := hold()
	long := p.task(p.handle("long", wire.TaskNormal, f))
	feed(&wire.Exec{Lease: 1, Tasks: []wire.ExecTask{long}})
	<-started
	other, behind := p.task(p.handle("where", wire.TaskNormal, where)), p.task(p.handle("ok", wire.TaskNormal, ok))
	feed(&wire.Exec{Lease: 2, Tasks: []wire.ExecTask{other}})
	if got := p.place(other.Spec.ID); got != "runner" {
		t.Errorf("a task beside one that runs ran on the %s", got)
	}
	feed(&wire.Exec{Lease: 1, Tasks: []wire.ExecTask{behind}}, &wire.CancelTask{Task: long.Spec.ID})
	if d := p.done(long.Spec.ID); !errors.Is(d.Err, errs.ErrCancelled) {
		t.Errorf("the long task: %v", d.Err)
	}
	if d := p.done(behind.Spec.ID); d.Err != nil {
		t.Errorf("the task behind it: %v", d.Err)
	}
	again(t, p) // its goroutine has its place again
	testkit.Eventually(t, "the end of the watcher", func() bool { return !p.e.reader.watching.Load() })
}

func TestAbandonedTaskOfTheReader(t *testing.T) {
	p, feed := reading(t)
	eager(t, p, feed)
	stuck, entered := make(chan struct{}), make(chan struct{})
	bad := p.task(p.handle("stuck", wire.TaskNormal, func(context.Context, *registry.Call) ([]registry.Output, any, error) {
		close(entered)
		<-stuck
		return out("late"), nil, nil
	}))
	feed(&wire.Exec{Lease: 1, Tasks: []wire.ExecTask{bad}})
	<-entered
	next := p.task(p.handle("ok", wire.TaskNormal, ok))
	feed(&wire.CancelTask{Task: bad.Spec.ID, Abandon: true}, &wire.Exec{Lease: 1, Tasks: []wire.ExecTask{next}})
	if d := p.done(bad.Spec.ID); !errors.Is(d.Err, errs.ErrCancelled) {
		t.Errorf("got %v", d.Err)
	}
	if d := p.done(next.Spec.ID); d.Err != nil {
		t.Errorf("the lane does not go on: %v", d.Err)
	}
	close(stuck)
	p.returned(bad.Spec.ID)
	again(t, p)
	more := p.task(p.handle("where", wire.TaskNormal, where))
	feed(&wire.Exec{Lease: 1, Tasks: []wire.ExecTask{more}})
	if got := p.place(more.Spec.ID); got != "reader" {
		t.Errorf("the next short task ran on the %s", got)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if n := len(of[*wire.Done](p.log)); n != 5 {
		t.Errorf("%d reports of four tasks, one of them abandoned", n)
	}
}

func TestTaskThatEndsTheReadersGoroutine(t *testing.T) {
	p, feed := reading(t)
	eager(t, p, feed)
	exit := p.task(p.handle("exit", wire.TaskNormal, func(context.Context, *registry.Call) ([]registry.Output, any, error) {
		runtime.Goexit()
		return nil, nil, nil
	}))
	feed(&wire.Exec{Lease: 1, Tasks: []wire.ExecTask{exit}})
	if d := p.done(exit.Spec.ID); !errors.Is(d.Err, errs.ErrPanic) {
		t.Errorf("got %v", d.Err)
	}
	again(t, p)
	next := p.task(p.handle("where", wire.TaskNormal, where))
	feed(&wire.Exec{Lease: 1, Tasks: []wire.ExecTask{next}})
	if got := p.place(next.Spec.ID); got != "reader" {
		t.Errorf("the next task ran on the %s", got)
	}
}

// Close waits for the reader's task as for any other.
func TestCloseWaitsForTheReadersTask(t *testing.T) {
	p, feed := reading(t)
	eager(t, p, feed)
	ended := false
	started := make(chan struct{})
	task := p.task(p.handle("slow to end", wire.TaskNormal, func(ctx context.Context, _ *registry.Call) ([]registry.Output, any, error) {
		close(started)
		<-ctx.Done()
		for range 1000 {
			runtime.Gosched()
		}
		ended = true
		return nil, nil, context.Cause(ctx)
	}))
	feed(&wire.Exec{Lease: 1, Tasks: []wire.ExecTask{task}})
	<-started
	ctx := testkit.Within(t)
	if err := p.e.Close(ctx); err != nil || !ended {
		t.Errorf("Close returned %v; the task had ended: %v", err, ended)
	}
}
