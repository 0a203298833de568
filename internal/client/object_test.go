package client

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/wire"
)

func TestLargePutIsSealedAndReadInPlace(t *testing.T) {
	f := newFake(t, Config{})
	data := make([]byte, fakeInline+1)
	data[fakeInline] = 7
	small, err := f.c.Put(t.Context(), wire.Value{Data: data[:fakeInline]})
	if err != nil {
		t.Fatal(err)
	}
	h, err := f.c.Put(t.Context(), wire.Value{Meta: []byte("m"), Data: data, Refs: []ids.ObjectID{small.ID()}})
	if err != nil || !h.Ready() {
		t.Fatalf("ready %v, %v", h.Ready(), err)
	}
	d, err := f.c.Get1(t.Context(), h)
	if err != nil || !d.Pinned() || d.Value.Data[fakeInline] != 7 || string(d.Value.Meta) != "m" || len(d.Value.Refs) != 1 {
		t.Fatalf("got %v, %v", d.Value, err)
	}
	f.mu.Lock()
	if creates := f.count(wire.KindCreate); creates != 1 {
		t.Errorf("%d creates: a value of exactly the inline limit needs none", creates)
	}
	if &d.Value.Data[0] != &f.arena[f.extents[h.ID()].Off] {
		t.Error("the value was copied")
	}
	f.mu.Unlock()
	d.Release()
}

// writerMemory is a memory that writes extents itself, or fails to.
type writerMemory struct {
	*fakeNode
	wrote  int
	broken error
}

func (m *writerMemory) Write(e wire.Extent, src []byte) error {
	if m.broken != nil {
		return m.broken
	}
	m.wrote += copy(m.arena[e.Off:e.Off+e.Size], src)
	return nil
}

func TestCreateFromLeavesTheWritingToTheMemory(t *testing.T) {
	f := newFake(t, Config{})
	w := &writerMemory{fakeNode: f}
	f.c.memory.of.Store(new(Memory(w)))
	data := make([]byte, fakeInline+1)
	data[fakeInline] = 7
	h, err := f.c.Put(t.Context(), wire.Value{Data: data})
	if err != nil || w.wrote != len(data) {
		t.Fatalf("%d bytes were written, %v", w.wrote, err)
	}
	if d, err := f.c.Get1(t.Context(), h); err != nil || d.Value.Data[fakeInline] != 7 {
		t.Fatalf("got %v, %v", d, err)
	}
	w.broken = errors.New("no memory")
	if _, err := f.c.Put(t.Context(), wire.Value{Data: data}); !errors.Is(err, w.broken) {
		t.Errorf("got %v", err)
	}
	f.until("the extent is given back", func() bool { return f.count(wire.KindAbort) == 1 })
}

func TestBufferEndsOnce(t *testing.T) {
	f := newFake(t, Config{})
	id := f.c.Root().NextPut()
	b, err := f.c.Create(t.Context(), id, 100)
	if err != nil || len(b.Bytes()) != 100 || cap(b.Bytes()) != 100 {
		t.Fatalf("got %v, %v", b, err)
	}
	h, err := b.Seal(nil, nil)
	if err != nil || b.Bytes() != nil {
		t.Fatalf("after the seal: %v, %v", b.Bytes(), err)
	}
	b.Abort()
	if _, err := b.Seal(nil, nil); !errors.Is(err, errs.ErrInvalid) {
		t.Errorf("a second seal gave %v", err)
	}
	again, err := f.c.Create(t.Context(), id, 100) // a parent that runs again
	if err != nil || len(again.Bytes()) != 100 {
		t.Fatalf("got %+v, %v", again, err)
	}
	h2, err := again.Seal(nil, nil)
	if err != nil || h2 != h {
		t.Errorf("one object has two entries: %v", err)
	}
	given, err := f.c.Create(t.Context(), f.c.Root().NextPut(), 10)
	if err != nil {
		t.Fatal(err)
	}
	given.Abort()
	given.Abort()
	if _, err := f.c.Create(t.Context(), f.c.Root().NextPut(), 1<<40); !errors.Is(err, errs.ErrObjectTooLarge) {
		t.Errorf("got %v", err)
	}
	bad, err := f.c.Create(t.Context(), f.c.Root().NextPut(), 10)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := bad.Seal(make([]byte, wire.MaxMeta+1), nil); !errors.Is(err, errs.ErrNotEncodable) {
		t.Errorf("got %v", err)
	}
	f.until("two aborts, two seals", func() bool { return f.count(wire.KindAbort) == 2 && f.count(wire.KindSeal) == 2 })
}

func TestCreateThatWaitsIsWithdrawn(t *testing.T) {
	f := newFake(t, Config{})
	f.full = true
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		f.until("Create", func() bool { return len(f.creates) == 1 })
		cancel()
	}()
	if _, err := f.c.Create(ctx, f.c.Root().NextPut(), 10); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	f.until("Abort", func() bool { return len(f.creates) == 0 })
}

func TestCreateAndCallCarryTheTask(t *testing.T) {
	f := newFake(t, Config{})
	tc := &TaskContext{Client: f.c, Task: f.c.Root().NextTask(), Attempt: 3, Spec: &wire.TaskSpec{}}
	ctx := WithTask(t.Context(), tc)
	b, err := f.c.Create(ctx, tc.Task.Return(0), 10)
	if err != nil {
		t.Fatal(err)
	}
	if err := b.SealReturn(nil, nil); err != nil {
		t.Fatal(err)
	}
	if f.c.Handles() != 0 {
		t.Error("a worker got a handle on its own return")
	}
	f.until("Seal", func() bool { return f.count(wire.KindSeal) == 1 })
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, m := range f.log {
		switch m := m.(type) {
		case *wire.Create:
			if m.Task != tc.Task || m.Attempt != 3 {
				t.Errorf("create: %+v", m)
			}
		case *wire.Seal:
			if m.Attempt != 3 || m.Size != 10 {
				t.Errorf("seal: %+v", m)
			}
		}
	}
}

func TestCallsAreNumberedByCallerAndActor(t *testing.T) {
	f := newFake(t, Config{})
	a, b := ids.ActorID(f.c.Root().NextTask()), ids.ActorID(f.c.Root().NextTask())
	tc := &TaskContext{Client: f.c, Task: f.c.Root().NextTask()}
	call := func(ctx context.Context, actor ids.ActorID) uint64 {
		spec := &wire.TaskSpec{ID: f.c.Root().NextTask(), Kind: wire.TaskActorCall, Actor: actor, Opts: plain}
		if _, err := f.c.Submit(ctx, spec); err != nil {
			t.Fatal(err)
		}
		return spec.Seq
	}
	root, nested := t.Context(), WithTask(t.Context(), tc)
	got := []uint64{call(root, a), call(root, a), call(root, b), call(nested, a), call(root, a), call(root, b)}
	want := []uint64{1, 2, 1, 1, 3, 2}
	for i := range want {
		if got[i] != want[i] {
			t.Fatalf("got %v, want %v", got, want)
		}
	}
	f.c.credit.add(1 << 20)
	ctx, cancel := context.WithCancel(root)
	cancel()
	f.c.credit.left.Store(0)
	if _, err := f.c.Submit(ctx, &wire.TaskSpec{Kind: wire.TaskActorCall, Actor: a, Opts: plain}); err == nil {
		t.Fatal("submitted without credit")
	}
	f.c.credit.add(1 << 20)
	if n := call(root, a); n != 4 {
		t.Errorf("a call that failed left a hole: the next is %d", n)
	}
}

func TestIdsFollowFromTheParent(t *testing.T) {
	c := newFake(t, Config{}).c
	job := c.Root().Task.Job()
	for _, parent := range []ids.TaskID{ids.RootTask(job, 2), ids.RootTask(job+1, 2)} { // the second is another job's
		a, b := &TaskContext{Client: c, Task: parent}, &TaskContext{Client: c, Task: parent}
		for range 10 {
			task, put := a.NextTask(), a.NextPut()
			if task != b.NextTask() || put != b.NextPut() {
				t.Fatal("a parent that runs again names other children")
			}
			if task.Job() != job || put.Job() != job {
				t.Fatalf("what a call makes is of job %v and %v, not of its process' job", task.Job(), put.Job())
			}
		}
	}
}

func TestCreditHoldsSubmitsBack(t *testing.T) {
	f := newFake(t, Config{})
	f.submit(plain) // before the first grant there is no bound
	f.c.Dispatch(&wire.Credit{Bytes: 1})
	f.submit(plain) // one may overdraw
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Millisecond)
	defer cancel()
	if _, err := f.c.Put(ctx, wire.Value{}); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("got %v", err)
	}
	done := make(chan error)
	go func() {
		_, err := f.c.Put(t.Context(), wire.Value{})
		done <- err
	}()
	f.c.Dispatch(&wire.Credit{Bytes: 1 << 10})
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}

func TestCreditSurvivesRestartsOfTheOwner(t *testing.T) {
	f := newFake(t, Config{})
	put := func() error {
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		_, err := f.c.Put(ctx, wire.Value{Data: make([]byte, 1000)})
		return err
	}
	f.c.Dispatch(&wire.Credit{}) // of an owner that restarted before it had granted any
	if err := put(); err != nil {
		t.Fatalf("a grant of nothing switched the bound on: %v", err)
	}
	f.c.Dispatch(&wire.Credit{Bytes: 3000})
	for range 20 { // the owner forgets each time what it had to give back
		n := 0
		for put() == nil {
			if n++; n > 3 {
				t.Fatal("more goes than the window allows")
			}
		}
		if n < 3 {
			t.Fatalf("only %d puts go after a restart", n)
		}
		f.c.Dispatch(&wire.Resync{Component: wire.ComponentOwner})
		f.c.Dispatch(&wire.Credit{})
		f.c.Dispatch(&wire.Credit{Bytes: 1000}) // what was under way at the crash comes on top
	}
}

func TestBindTellsTheOwnerOnce(t *testing.T) {
	f := newFake(t, Config{})
	id := ids.RootTask(1, 9).Return(0)
	a, b := f.c.Bind(id), f.c.Bind(id)
	if a != b {
		t.Fatal("one object has two entries")
	}
	a.Release()
	b.Release()
	c := f.c.Bind(id) // before the release was sent: nothing was lost, nothing is said
	f.c.Flush()
	f.until("one AddRef", func() bool { return f.held[id] && f.count(wire.KindRelease) == 0 && f.count(wire.KindAddRef) == 1 })
	c.Release()
	f.c.Flush()
	f.until("released", func() bool { return !f.held[id] && f.count(wire.KindRelease) == 1 })
	f.c.Bind(id).Release()
	f.until("bound again", func() bool { return f.count(wire.KindAddRef) == 2 && !f.held[id] })
}

func TestStream(t *testing.T) {
	f := newFake(t, Config{})
	opts := &wire.TaskOptions{Func: "s", NumReturns: wire.Streaming}
	spec, hs := f.submit(opts)
	if len(hs) != 0 {
		t.Fatal("a stream has no handles of its own")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Millisecond)
	defer cancel()
	if _, _, err := f.c.Next(ctx, spec.ID, 0); !errors.Is(err, errs.ErrGetTimeout) {
		t.Fatalf("got %v", err)
	}
	f.emit(spec.ID, 0, wire.Result{Kind: wire.ResultInline, Value: wire.Value{Data: []byte("a")}, Size: 1})
	h, more, err := f.c.Next(t.Context(), spec.ID, 0)
	if err != nil || !more || h.ID() != spec.ID.Return(0) {
		t.Fatalf("got %v %v %v", h, more, err)
	}
	if d, err := f.c.Get1(t.Context(), h); err != nil || string(d.Value.Data) != "a" {
		t.Fatalf("got %q, %v", d.Value.Data, err)
	}
	h.Release()
	f.until("the item is held and released", func() bool { return len(f.held) == 0 && f.count(wire.KindAddRef) == 1 })
	two := make(chan *Handle, 2)
	for range 2 { // two readers of one item
		go func() {
			h, _, err := f.c.Next(t.Context(), spec.ID, 1)
			if err != nil {
				t.Error(err)
			}
			two <- h
		}()
	}
	f.until("asked", func() bool { return slices.ContainsFunc(f.asks, func(a wire.StreamNext) bool { return a.Index == 1 }) })
	f.emit(spec.ID, 1, wire.Result{Kind: wire.ResultInline})
	(<-two).Release()
	(<-two).Release()
	f.until("released", func() bool { return len(f.held) == 0 })
	f.emit(spec.ID, 2, wire.Result{Kind: wire.ResultNone})
	if _, more, err := f.c.Next(t.Context(), spec.ID, 2); more || err != nil {
		t.Errorf("at the end: %v, %v", more, err)
	}
	f.emit(spec.ID, 3, wire.Result{Kind: wire.ResultError, Err: errs.New(errs.CodeTaskFailed, "x")})
	if _, _, err := f.c.Next(t.Context(), spec.ID, 3); !errors.Is(err, errs.ErrTaskFailed) {
		t.Errorf("got %v", err)
	}
}

func TestCommands(t *testing.T) {
	f := newFake(t, Config{})
	task := f.c.Root().NextTask()
	if err := errors.Join(f.c.Cancel(wire.Cancel{Task: task, Force: true, Recursive: true, Insist: true}), f.c.KillActor(ids.ActorID(task), true)); err != nil {
		t.Fatal(err)
	}
	body, err := f.c.Request(t.Context(), "m", []byte("x"))
	if err != nil || string(body) != "re:x" {
		t.Fatalf("got %q, %v", body, err)
	}
	f.mu.Lock()
	f.mute = true
	f.mu.Unlock()
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if _, err := f.c.Request(ctx, "m", nil); !errors.Is(err, errs.ErrGetTimeout) {
		t.Errorf("got %v", err)
	}
	f.until("commands", func() bool { return f.count(wire.KindCancel) == 1 && f.count(wire.KindKillActor) == 1 })
}
