package mobula

import (
	"context"
	"sync"
	"sync/atomic"
	"unsafe"

	"mobula/internal/client"
	"mobula/internal/codec"
	"mobula/internal/errs"
	"mobula/internal/ids"
)

// Buffer is memory in the store, to be written in place: fill Slice, then Put it, or, if it came
// from CreateResult, return the slice from the task. Either way nothing is copied. What it holds
// at first is undefined. A Buffer belongs to one goroutine at a time.
type Buffer[T any] struct {
	raw  *client.Buffer
	c    *client.Client
	plan *codec.Plan
	data []T
	done bool
}

// Create gets room for n elements, which must be numbers or arrays of numbers, and waits for it
// as long as the store is full. Put or Abort it.
func Create[T any](ctx context.Context, n int) (*Buffer[T], error) {
	tc, err := taskOf(ctx)
	if err != nil {
		return nil, err
	}
	return create[T](ctx, tc, tc.NextPut(), n)
}

// CreateResult gets room for the task's result of that index (0 for its only one; of a stream the
// item's number, from 0). The task returns, or yields, the buffer's slice as its []T: it is recognised and sealed where it
// lies. A buffer that is not returned is given back when the task ends.
func CreateResult[T any](ctx context.Context, index, n int) (*Buffer[T], error) {
	tc, err := taskOf(ctx)
	if err != nil {
		return nil, err
	}
	if tc.Spec == nil {
		return nil, errs.New(errs.CodeInvalid, "CreateResult outside a task: use Create")
	}
	if r := tc.Spec.Opts.NumReturns; index < 0 || r >= 0 && index >= int(r) {
		return nil, errs.New(errs.CodeInvalid, "CreateResult of result %d: the task returns %d", index, r)
	}
	b, err := create[T](ctx, tc, tc.Task.Return(index), n)
	if err != nil {
		return nil, err
	}
	var at unsafe.Pointer
	if len(b.data) > 0 {
		at = unsafe.Pointer(unsafe.SliceData(b.data))
	}
	openResults.add(tc, &resultBuffer{raw: b.raw, index: index, at: at, size: n * int(b.plan.Width()), plan: b.plan})
	b.done = true // the task's end decides
	return b, nil
}

func create[T any](ctx context.Context, tc *client.TaskContext, id ids.ObjectID, n int) (*Buffer[T], error) {
	plan := planOf[[]T]()
	width := plan.Width()
	if width == 0 {
		return nil, errs.New(errs.CodeInvalid, "Create of %s: only numbers, bytes and arrays of them are laid out in place", plan.Name())
	}
	if n < 0 || width*uintptr(n)/width != uintptr(n) {
		return nil, errs.New(errs.CodeInvalid, "Create of %d elements", n)
	}
	raw, err := tc.Client.Create(ctx, id, uint64(n)*uint64(width))
	if err != nil {
		return nil, err
	}
	b := &Buffer[T]{raw: raw, c: tc.Client, plan: plan}
	if n > 0 {
		b.data = unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(raw.Bytes()))), n)
	}
	return b, nil
}

// Slice is the memory. It must not be used after Put, Abort or the task's end.
func (b *Buffer[T]) Slice() []T { return b.data[:len(b.data):len(b.data)] }

// Put seals what was written and makes an object of it.
func (b *Buffer[T]) Put() (Ref[[]T], error) {
	if b.done {
		return Ref[[]T]{}, errs.New(errs.CodeInvalid, "Buffer.Put: it was put, aborted or is a task's result already")
	}
	b.done, b.data = true, nil
	h, err := b.raw.Seal(b.plan.Meta(), nil)
	if err != nil {
		return Ref[[]T]{}, err
	}
	return Ref[[]T]{newCell(b.c, h, nil)}, nil
}

// Abort gives the memory back. After Put it does nothing.
func (b *Buffer[T]) Abort() {
	if !b.done {
		b.done, b.data = true, nil
		b.raw.Abort()
	}
}

// resultBuffer is an open result of a running task.
type resultBuffer struct {
	raw   *client.Buffer
	index int
	at    unsafe.Pointer // of its first element
	size  int
	plan  *codec.Plan
}

// resultTable holds the open results of this process' running tasks. Most tasks have none, and look
// at count alone.
type resultTable struct {
	count atomic.Int64
	mu    sync.Mutex
	open  map[*client.TaskContext][]*resultBuffer // guarded by mu
}

var openResults resultTable

func (t *resultTable) add(tc *client.TaskContext, b *resultBuffer) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.open == nil {
		t.open = make(map[*client.TaskContext][]*resultBuffer)
	}
	t.open[tc] = append(t.open[tc], b)
	t.count.Add(1)
}

// takeResult finds the open buffer that what r points to, the result of that index, is.
func takeResult(tc *client.TaskContext, index int, p *codec.Plan, r unsafe.Pointer) *resultBuffer {
	if openResults.count.Load() == 0 || p.Width() == 0 {
		return nil
	}
	s := (*struct {
		at       unsafe.Pointer
		len, cap int
	})(r)
	return openResults.take(tc, func(b *resultBuffer) bool {
		return b.index == index && b.plan == p && b.size == s.len*int(p.Width()) && (b.size == 0 || b.at == s.at)
	})
}

func (t *resultTable) take(tc *client.TaskContext, match func(*resultBuffer) bool) *resultBuffer {
	t.mu.Lock()
	defer t.mu.Unlock()
	list := t.open[tc]
	for i, b := range list {
		if match(b) {
			t.open[tc] = append(list[:i:i], list[i+1:]...)
			t.count.Add(-1)
			return b
		}
	}
	return nil
}

// callEnds gives back what the task created and did not return.
func callEnds(ctx context.Context) {
	if openResults.count.Load() == 0 {
		return
	}
	tc := client.FromContext(ctx)
	if tc == nil {
		return
	}
	openResults.mu.Lock()
	left := openResults.open[tc]
	delete(openResults.open, tc)
	openResults.count.Add(-int64(len(left)))
	openResults.mu.Unlock()
	for _, b := range left {
		b.raw.Abort()
	}
}
