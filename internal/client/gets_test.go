package client

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/internal/testkit"
	"mobula/wire"
)

func TestGetOfOwnPutNeedsNoTrip(t *testing.T) {
	f := newFake(t, Config{})
	h, err := f.c.Put(t.Context(), wire.Value{Meta: []byte("b"), Data: []byte("hello")})
	if err != nil {
		t.Fatal(err)
	}
	ds, err := f.c.Get(t.Context(), h)
	if err != nil || string(ds[0].Value.Data) != "hello" || ds[0].Pinned() {
		t.Fatalf("got %v, %v", ds, err)
	}
	f.until("the put", func() bool { return f.held[h.ID()] })
	if n := f.count(wire.KindGet); n != 0 {
		t.Errorf("%d Gets were sent", n)
	}
	h.Release()
	f.until("the release", func() bool { return len(f.held) == 0 })
}

func TestGetManyIsOneBatchAndOneWake(t *testing.T) {
	f := newFake(t, Config{})
	var hs []*Handle
	for range 50 {
		_, h := f.submit(plain)
		hs = append(hs, h...)
	}
	got := make(chan []Data)
	go func() {
		ds, err := f.c.Get(t.Context(), hs...)
		if err != nil {
			t.Error(err)
		}
		got <- ds
	}()
	f.until("fifty Gets", func() bool { return f.count(wire.KindGet) == 50 })
	for i, h := range hs {
		if i%2 == 0 {
			f.resolveInline(h.ID(), h.ID().String())
		} else {
			f.resolveStored(h.ID(), h.ID().String())
		}
	}
	for i, d := range <-got {
		if string(d.Value.Data) != hs[i].ID().String() {
			t.Errorf("value %d is %q", i, d.Value.Data)
		}
		if d.Pinned() != (i%2 == 1) {
			t.Errorf("value %d: pinned %v", i, d.Pinned())
		}
		again := d
		d.Release()
		again.Release() // a copy shares the pin: once only
	}
	for _, h := range hs {
		h.Release()
	}
	f.until("no pin and no handle is left", func() bool { return len(f.pins) == 0 && len(f.held) == 0 })
}

func TestReadersShareOnePin(t *testing.T) {
	f := newFake(t, Config{})
	_, hs := f.submit(plain)
	f.resolveStored(hs[0].ID(), "shared")
	first, err := f.c.Get1(t.Context(), hs[0])
	if err != nil {
		t.Fatal(err)
	}
	second, err := f.c.Get1(t.Context(), hs[0])
	if err != nil {
		t.Fatal(err)
	}
	first.Release()
	hs[0].Release() // the pin outlives the handle
	f.until("the release", func() bool { return len(f.held) == 0 })
	f.mu.Lock()
	pins := f.pins[hs[0].ID()]
	f.mu.Unlock()
	if pins != 1 || string(second.Value.Data) != "shared" {
		t.Fatalf("%d pins while a reader is left, data %q", pins, second.Value.Data)
	}
	second.Release()
	f.until("the unpin", func() bool { return len(f.pins) == 0 })
}

func TestSecondPinOfAnObjectIsCounted(t *testing.T) {
	f := newFake(t, Config{})
	_, hs := f.submit(plain)
	f.resolveStored(hs[0].ID(), "twice")
	d, err := f.c.Get1(t.Context(), hs[0])
	if err != nil {
		t.Fatal(err)
	}
	f.mu.Lock() // an answer to a Get that was withdrawn crosses the one in use
	late := f.answer(wire.Get{ID: hs[0].ID(), Fetch: true}, f.objects[hs[0].ID()])
	f.mu.Unlock()
	f.c.Dispatch(late)
	d.Release()
	f.until("both pins are back, in one message", func() bool { return len(f.pins) == 0 && f.count(wire.KindUnpin) == 1 })
}

func TestGetErrorComesAtOnceAndGivesPinsBack(t *testing.T) {
	f := newFake(t, Config{})
	_, a := f.submit(plain)
	_, b := f.submit(plain)
	_, never := f.submit(plain)
	f.resolveStored(a[0].ID(), "a")
	f.resolve(b[0].ID(), wire.Result{Kind: wire.ResultError, Err: errs.New(errs.CodeTaskFailed, "boom")})
	_, err := f.c.Get(t.Context(), a[0], never[0], b[0])
	if !errors.Is(err, errs.ErrTaskFailed) {
		t.Fatalf("got %v", err)
	}
	f.until("the pin is back and the Get withdrawn", func() bool { return len(f.pins) == 0 && f.count(wire.KindUnget) > 0 })
}

// Each get of an object that cannot be mapped fails, until it can be.
func TestGetOfWhatCannotBeMapped(t *testing.T) {
	f := newFake(t, Config{})
	f.c.releaser.mu.Lock()
	f.c.releaser.armed = true // its pin is not given back before the next get
	f.c.releaser.mu.Unlock()
	_, hs := f.submit(plain)
	id := hs[0].ID()
	f.mu.Lock()
	f.extents[id] = wire.Extent{Off: uint64(len(f.arena)), Size: 4}
	f.mu.Unlock()
	f.resolve(id, wire.Result{Kind: wire.ResultStored, Size: 4})
	for range 2 {
		if _, err := f.c.Get1(t.Context(), hs[0]); err == nil {
			t.Fatal("got what is outside of the segment")
		}
	}
	f.mu.Lock()
	f.extents[id] = wire.Extent{Off: 0, Size: 4}
	copy(f.arena, "here")
	f.mu.Unlock()
	d, err := f.c.Get1(t.Context(), hs[0])
	if err != nil || string(d.Value.Data) != "here" {
		t.Fatalf("got %q, %v", d.Value.Data, err)
	}
	d.Release()
	f.c.Flush()
	f.until("all pins are back", func() bool { return len(f.pins) == 0 })
}

func TestGetTimeoutLeavesHandlesValid(t *testing.T) {
	f := newFake(t, Config{})
	_, hs := f.submit(plain)
	for asked := false; !asked; { // on a busy machine the time may be over before the get has asked
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Millisecond)
		_, err := f.c.Get1(ctx, hs[0])
		cancel()
		if !errors.Is(err, errs.ErrGetTimeout) || !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("got %v", err)
		}
		f.mu.Lock()
		asked = f.count(wire.KindGet) > 0
		f.mu.Unlock()
	}
	f.until("Unget", func() bool { return f.count(wire.KindUnget) == 1 })
	f.resolveStored(hs[0].ID(), "late")
	d, err := f.c.Get1(t.Context(), hs[0])
	if err != nil || string(d.Value.Data) != "late" {
		t.Fatalf("got %q, %v", d.Value.Data, err)
	}
	d.Release()
}

// An Unget withdraws all Gets of this client for an object: a goroutine that still waits for its result asks
// again.
func TestWaitOutlivesTheGetThatItReliedOn(t *testing.T) {
	f := newFake(t, Config{})
	for _, first := range []bool{false, true} { // the wait has asked itself; the get had asked already
		_, hs := f.submit(plain)
		w := f.c.NewWatcher()
		watch := func() {
			if err := w.Watch(hs); err != nil {
				t.Fatal(err)
			}
		}
		if !first {
			watch()
		}
		ctx, cancel := context.WithCancel(t.Context())
		given := make(chan error, 1)
		go func() {
			_, err := f.c.Get1(ctx, hs[0])
			given <- err
		}()
		f.until("the Get", func() bool { return slices.ContainsFunc(f.subs[hs[0].ID()], func(g wire.Get) bool { return g.Fetch }) })
		if first {
			watch()
		}
		cancel()
		if err := <-given; !errors.Is(err, context.Canceled) {
			t.Fatalf("got %v", err)
		}
		f.until("a Get without fetch", func() bool {
			gets := f.subs[hs[0].ID()]
			return len(gets) == 1 && !gets[0].Fetch
		})
		f.resolveInline(hs[0].ID(), "v")
		<-w.Ready()
		if got := w.Take(nil); len(got) != 1 {
			t.Fatalf("heard %v", got)
		}
	}
}

func TestWaitAfterAWaitAndAGetThatGaveUp(t *testing.T) {
	f := newFake(t, Config{})
	_, hs := f.submit(plain)
	short, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if _, _, err := f.c.Wait(short, hs, 1); !errors.Is(err, errs.ErrGetTimeout) {
		t.Fatalf("got %v", err)
	}
	short, cancel = context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if _, err := f.c.Get1(short, hs[0]); !errors.Is(err, errs.ErrGetTimeout) {
		t.Fatalf("got %v", err)
	}
	f.until("Unget", func() bool { return f.count(wire.KindUnget) == 1 })
	w := f.c.NewWatcher()
	if err := w.Watch(hs); err != nil {
		t.Fatal(err)
	}
	f.until("a new question", func() bool { return len(f.subs[hs[0].ID()]) == 1 })
}

func TestLateResolvedIsUnpinned(t *testing.T) {
	f := newFake(t, Config{})
	_, hs := f.submit(plain)
	id := hs[0].ID()
	f.resolveStored(id, "late")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := f.c.Get1(ctx, hs[0]); !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v", err)
	}
	late := func() {
		f.mu.Lock()
		m := f.answer(wire.Get{ID: id, Fetch: true}, f.objects[id])
		f.mu.Unlock()
		f.c.Dispatch(m)
	}
	late() // known, nobody reads
	f.until("the unpin", func() bool { return len(f.pins) == 0 })
	hs[0].Release()
	f.until("the release", func() bool { return len(f.held) == 0 })
	late() // not even known any more
	f.until("the second unpin", func() bool { return len(f.pins) == 0 && f.count(wire.KindUnpin) == 2 })
}

func TestUseAfterReleaseIsAnError(t *testing.T) {
	f := newFake(t, Config{})
	_, hs := f.submit(plain)
	hs[0].Release()
	hs[0].Release() // one too many does no harm
	if _, err := f.c.Get1(t.Context(), hs[0]); !errors.Is(err, errs.ErrObjectFreed) {
		t.Fatalf("before the release was sent: %v", err)
	}
	f.until("the release", func() bool { return f.count(wire.KindRelease) == 1 })
	if _, err := f.c.Get1(t.Context(), hs[0]); !errors.Is(err, errs.ErrObjectFreed) {
		t.Fatalf("got %v", err)
	}
}

func TestEvictedValueIsFetchedAgain(t *testing.T) {
	f := newFake(t, Config{CacheBytes: 8 << 10})
	var hs []*Handle
	for range 100 {
		h, err := f.c.Put(t.Context(), wire.Value{Data: make([]byte, 512)})
		if err != nil {
			t.Fatal(err)
		}
		hs = append(hs, h)
	}
	if used := f.c.table.cacheUsed.Load(); used > 8<<10 {
		t.Errorf("the cache holds %d bytes", used)
	}
	ds, err := f.c.Get(t.Context(), hs...)
	if err != nil {
		t.Fatal(err)
	}
	for i, d := range ds {
		if len(d.Value.Data) != 512 {
			t.Fatalf("value %d has %d bytes", i, len(d.Value.Data))
		}
	}
	f.until("Gets of what was evicted", func() bool { return f.count(wire.KindGet) >= 80 })
	for _, h := range hs {
		h.Release()
	}
	f.until("all released", func() bool { return len(f.held) == 0 })
	if used := f.c.table.cacheUsed.Load(); used != 0 {
		t.Errorf("%d bytes are counted for nothing", used)
	}
}

func TestWaitGivesTheFastest(t *testing.T) {
	f := newFake(t, Config{})
	var hs []*Handle
	for range 10 {
		_, h := f.submit(plain)
		hs = append(hs, h...)
	}
	go func() {
		f.until("Gets", func() bool { return f.count(wire.KindGet) == 10 })
		f.resolveStored(hs[7].ID(), "x")
	}()
	ready, rest, err := f.c.Wait(t.Context(), hs, 1)
	if err != nil || len(ready) != 1 || ready[0] != 7 || len(rest) != 9 {
		t.Fatalf("got %v %v %v", ready, rest, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	ready, rest, err = f.c.Wait(ctx, hs, 3)
	if !errors.Is(err, errs.ErrGetTimeout) || len(ready) != 1 || len(rest) != 9 {
		t.Fatalf("got %v %v %v", ready, rest, err)
	}
	f.until("quiet", func() bool { return f.count(wire.KindGet) == 10 }) // the second wait asked nothing again
}

// Objects whose values were evicted from the cache are still ready.
func TestWaitCountsValuesThatWereEvicted(t *testing.T) {
	f := newFake(t, Config{CacheBytes: 2 << 10})
	var hs []*Handle
	for range 20 {
		_, h := f.submit(plain)
		hs = append(hs, h...)
	}
	for _, h := range hs {
		f.resolveInline(h.ID(), string(make([]byte, 512)))
	}
	ready, rest, err := f.c.Wait(t.Context(), hs, len(hs))
	if err != nil || len(ready) != len(hs) || len(rest) != 0 {
		t.Fatalf("%d are ready, %d are not (%v); all %d are", len(ready), len(rest), err, len(hs))
	}
}

// After an error of one object, no other object counts as asked for without a Get.
func TestWaitAfterOneWithAReleasedReference(t *testing.T) {
	f := newFake(t, Config{})
	_, gone := f.submit(plain)
	gone[0].Release()
	asks := map[string]func(hs []*Handle) error{
		"wait":  func(hs []*Handle) error { _, _, err := f.c.Wait(t.Context(), hs, 1); return err },
		"watch": func(hs []*Handle) error { return f.c.NewWatcher().Watch(hs) },
	}
	for name, ask := range asks {
		_, hs := f.submit(plain)
		if err := ask([]*Handle{hs[0], gone[0]}); !errors.Is(err, errs.ErrObjectFreed) {
			t.Fatalf("%s: got %v", name, err)
		}
		w := f.c.NewWatcher()
		if err := w.Watch(hs); err != nil {
			t.Fatal(err)
		}
		f.until(name+": a question", func() bool { return len(f.subs[hs[0].ID()]) == 1 })
	}
}

type recorder struct {
	mu sync.Mutex
	s  []string
}

func (r *recorder) add(s string)                            { r.mu.Lock(); r.s = append(r.s, s); r.mu.Unlock() }
func (r *recorder) Blocked(context.Context, []ids.ObjectID) { r.add("blocked") }
func (r *recorder) Unblocked(_ context.Context)             { r.add("unblocked") }

func TestBlockerIsToldOnlyOfRealWaits(t *testing.T) {
	f := newFake(t, Config{})
	r := new(recorder)
	ctx := WithTask(t.Context(), &TaskContext{Client: f.c, Task: f.c.Root().NextTask(), Blocker: r})
	h, err := f.c.Put(ctx, wire.Value{Data: []byte("x")})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.c.Get1(ctx, h); err != nil {
		t.Fatal(err)
	}
	if len(r.s) != 0 {
		t.Fatalf("told of %v", r.s)
	}
	_, hs := f.submit(plain)
	go func() {
		f.until("Get", func() bool { return f.count(wire.KindGet) == 1 })
		testkit.Eventually(t, "a report of the waiter, after it asked", func() bool {
			r.mu.Lock()
			defer r.mu.Unlock()
			return len(r.s) > 0
		})
		f.resolveInline(hs[0].ID(), "y")
	}()
	if _, err := f.c.Get1(ctx, hs[0]); err != nil {
		t.Fatal(err)
	}
	if strings.Join(r.s, " ") != "blocked unblocked" {
		t.Fatalf("told of %v", r.s)
	}
}

// A task that fetches an existing object keeps its CPU; one that waits long, or for a task of its own, gives it
// back.
func TestABriefWaitIsNotReported(t *testing.T) {
	for _, c := range []struct {
		name   string
		called bool
		takes  time.Duration
		want   string
	}{
		{"brief", false, blockedAfter / 2, ""},
		{"long", false, 2 * blockedAfter, "blocked unblocked"},
		{"for what it may have called", true, blockedAfter / 2, "blocked unblocked"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFake(t, Config{})
				r := new(recorder)
				tc := &TaskContext{Client: f.c, Task: f.c.Root().NextTask(), Blocker: r}
				if c.called {
					tc.NextTask()
				}
				_, hs := f.submit(plain)
				time.AfterFunc(c.takes, func() { f.resolveInline(hs[0].ID(), "y") })
				if _, err := f.c.Get1(WithTask(t.Context(), tc), hs[0]); err != nil {
					t.Fatal(err)
				}
				if got := strings.Join(r.s, " "); got != c.want {
					t.Errorf("told of %q, want %q", got, c.want)
				}
			})
		})
	}
}

func TestStuckGetWarnsAndStoredFetchFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := new(logLines)
		f := newFake(t, Config{Log: log.logger(), Explain: func(context.Context, ids.ObjectID) string { return "its task is queued" }})
		_, hs := f.submit(plain)
		start := time.Now()
		done := make(chan error)
		go func() {
			_, err := f.c.Get1(t.Context(), hs[0])
			done <- err
		}()
		time.Sleep(50 * time.Minute) // a task may run long: no failure, only warnings
		synctest.Wait()
		if n := log.count("a get waits long"); n < 49 || n > 50 {
			t.Errorf("%d warnings in 50 minutes", n)
		}
		if !strings.Contains(log.all(), hs[0].ID().Task.String()) || !strings.Contains(log.all(), "its task is queued") {
			t.Errorf("the warning does not name the object or why: %s", log.all()[:200])
		}
		f.mu.Lock() // now it is stored, and its bytes do not come
		f.objects[hs[0].ID()] = wire.Result{Kind: wire.ResultStored, Size: 4}
		var probe []wire.Msg
		for _, g := range f.subs[hs[0].ID()] {
			if !g.Fetch {
				probe = append(probe, f.answer(g, f.objects[hs[0].ID()]))
			}
		}
		f.mu.Unlock()
		if len(probe) != 1 {
			t.Fatalf("the owner was asked %d times whether the object is stored", len(probe))
		}
		f.c.Deliver(probe)
		err := <-done
		took := time.Since(start) - 50*time.Minute
		if !errors.Is(err, errs.ErrFetchTimedOut) || !strings.Contains(err.Error(), "its task is queued") || took < 10*time.Minute || took > 12*time.Minute {
			t.Errorf("after %v: %v", took, err)
		}
		hs[0].Release()
		time.Sleep(time.Second)
	})
}

// Whoever gives a wait up is told how, and with which cause.
func TestAWaitThatIsGivenUpSaysWhy(t *testing.T) {
	f := newFake(t, Config{})
	_, hs := f.submit(plain)
	own := errors.New("of the program")
	for name, c := range map[string]struct {
		ctx  func() (context.Context, context.CancelFunc)
		want []error
	}{
		"cancelled": {func() (context.Context, context.CancelFunc) { return context.WithCancel(t.Context()) },
			[]error{errs.ErrCancelled, context.Canceled}},
		"with a cause": {func() (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithCancelCause(t.Context())
			return ctx, func() { cancel(own) }
		}, []error{errs.ErrCancelled, context.Canceled, own}},
		"deadline with a cause": {func() (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithDeadlineCause(t.Context(), time.Unix(0, 0), own)
			cancel()
			return ctx, cancel
		}, []error{errs.ErrGetTimeout, context.DeadlineExceeded, own}},
	} {
		ctx, cancel := c.ctx()
		cancel()
		_, err := f.c.Get1(ctx, hs[0])
		for _, want := range c.want {
			if !errors.Is(err, want) {
				t.Errorf("%s: got %v, want %v", name, err, want)
			}
		}
	}
}

// A token that comes late, for who had the waiter before, ends no wait, and is no sign of a long one.
func TestALateTokenEndsNoWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := new(logLines)
		f := newFake(t, Config{Log: log.logger()})
		_, hs := f.submit(plain)
		w := f.c.gets.waiter()
		nodes := append(w.nodes(1)[:0], waitNode{w: w, h: hs[0], fetch: true})
		w.left.Store(1)
		if _, err := f.c.gets.link(&nodes[0]); err != nil {
			t.Fatal(err)
		}
		if err := f.c.gets.outbox.ask([]wire.Get{{ID: hs[0].ID(), Fetch: true}}); err != nil {
			t.Fatal(err)
		}
		w.Give()
		done := make(chan error)
		go func() { done <- f.c.gets.await(t.Context(), w, nodes) }()
		synctest.Wait()
		w.Give()
		synctest.Wait()
		select {
		case err := <-done:
			t.Fatalf("it has ended: %v", err)
		default:
		}
		f.resolveInline(hs[0].ID(), "y")
		if err := <-done; err != nil || !nodes[0].done || log.count("a get waits long") != 0 {
			t.Errorf("it has ended with %v, %v, after %q", err, nodes[0].done, log.all())
		}
		f.c.gets.free(w)
	})
}
