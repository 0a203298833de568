package call

import (
	"context"
	"unsafe"

	"mobula/internal/client"
	"mobula/internal/errs"
	"mobula/internal/ids"
)

// Buffer is memory in the store, of a []T that is written in place.
type Buffer[T any] struct {
	raw  *client.Buffer
	c    *client.Client
	plan *Plan
	data []T
	done bool
}

// Create gets room for n elements, and waits for it as long as the store is full.
func (b *Buffer[T]) Create(ctx context.Context, n int) error {
	tc, err := taskOf(ctx)
	if err != nil {
		return err
	}
	return b.create(ctx, tc, tc.NextPut(), n)
}

// CreateResult gets room for the task's result of that index. The task seals it or frees it when it ends.
func (b *Buffer[T]) CreateResult(ctx context.Context, index, n int) error {
	tc, err := taskOf(ctx)
	if err != nil {
		return err
	}
	if tc.Spec == nil {
		return errs.New(errs.CodeInvalid, "CreateResult outside a task: use Create")
	}
	if r := tc.Spec.Opts.NumReturns; index < 0 || r >= 0 && index >= int(r) {
		return errs.New(errs.CodeInvalid, "CreateResult of result %d: the task returns %d", index, r)
	}
	if err := b.create(ctx, tc, tc.Task.Return(index), n); err != nil {
		return err
	}
	var at unsafe.Pointer
	if len(b.data) > 0 {
		at = unsafe.Pointer(unsafe.SliceData(b.data))
	}
	openResults.add(tc, &resultBuffer{raw: b.raw, index: index, at: at, size: n * int(b.plan.Width()), plan: b.plan})
	b.done = true // the task's end decides
	return nil
}

func (b *Buffer[T]) create(ctx context.Context, tc *client.TaskContext, id ids.ObjectID, n int) error {
	plan := PlanOf[[]T]()
	width := plan.Width()
	if width == 0 {
		return errs.New(errs.CodeInvalid, "Create of %s: only numbers, bytes and arrays of them are laid out in place", plan.Name())
	}
	if n < 0 || width*uintptr(n)/width != uintptr(n) {
		return errs.New(errs.CodeInvalid, "Create of %d elements", n)
	}
	raw, err := tc.Client.Create(ctx, id, uint64(n)*uint64(width))
	if err != nil {
		return err
	}
	*b = Buffer[T]{raw: raw, c: tc.Client, plan: plan}
	if n > 0 {
		b.data = unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(raw.Bytes()))), n)
	}
	return nil
}

// Slice is the memory.
func (b *Buffer[T]) Slice() []T { return b.data[:len(b.data):len(b.data)] }

// Put seals the buffer and makes an object of it.
func (b *Buffer[T]) Put() (*Cell, error) {
	if b.done {
		return nil, errs.New(errs.CodeInvalid, "Buffer.Put: it was put, aborted or is a task's result already")
	}
	b.done, b.data = true, nil
	h, err := b.raw.Seal(b.plan.Meta(), nil)
	if err != nil {
		return nil, err
	}
	return newCell(b.c, h, nil), nil
}

// Abort gives the memory back. After Put it does nothing.
func (b *Buffer[T]) Abort() {
	if !b.done {
		b.done, b.data = true, nil
		b.raw.Abort()
	}
}
