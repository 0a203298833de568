package client

import (
	"context"
	"sync/atomic"
	"time"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/wire"
)

// creation is a Create that was not answered yet.
type creation struct {
	m  *wire.Create
	ch chan *wire.Created // capacity 1
}

// Create asks the store for size bytes under id and waits for them: under memory
// pressure until the store has made room. Attempt and task are those of ctx. When ctx ends the request is
// withdrawn. Errors: ErrObjectTooLarge, ErrStoreFull, ErrOutOfDisk from the store, the cause of ctx, ErrShutdown,
// ErrOwnerDied.
func (ps *puts) Create(ctx context.Context, id ids.ObjectID, size uint64) (*Buffer, error) {
	b, e, err := ps.allocate(ctx, id, size)
	if err != nil {
		return nil, err
	}
	if b.data, err = ps.memory.mem().Map(e, true); err != nil {
		b.Abort()
		return nil, err
	}
	b.data = b.data[:size:size]
	return b, nil
}

// CreateFrom is Create of an object that holds src, which is written when it returns. The caller then only seals
// or aborts the buffer.
func (ps *puts) CreateFrom(ctx context.Context, id ids.ObjectID, src []byte) (*Buffer, error) {
	m, ok := ps.memory.mem().(Writer)
	if !ok {
		b, err := ps.Create(ctx, id, uint64(len(src)))
		if err == nil {
			copy(b.data, src)
		}
		return b, err
	}
	b, e, err := ps.allocate(ctx, id, uint64(len(src)))
	if err != nil {
		return nil, err
	}
	if err := m.Write(e, src); err != nil {
		b.Abort()
		return nil, err
	}
	return b, nil
}

// allocate asks the store for an extent.
func (ps *puts) allocate(ctx context.Context, id ids.ObjectID, size uint64) (b *Buffer, e wire.Extent, err error) {
	if err := ps.Err(); err != nil {
		return nil, e, err
	}
	m := &wire.Create{Req: ps.outbox.req.Add(1), ID: id, Size: size}
	if tc := FromContext(ctx); tc != nil && tc.Client == ps.root.Client && tc.Spec != nil {
		m.Attempt, m.Task = tc.Attempt, tc.Task
	}
	q := &creation{m: m, ch: make(chan *wire.Created, 1)}
	ps.creates.add(m.Req, q)
	if ps.handles.releaser.waiting.Load() > 0 {
		ps.outbox.Flush() // this client's own pins may be what the store waits for
	}
	if err := ps.outbox.send(m); err != nil {
		ps.creates.take(m.Req)
		return nil, e, err
	}
	a, err := ps.awaitCreated(ctx, q)
	if err != nil {
		if _, open := ps.creates.take(m.Req); !open { // answered meanwhile, or about to be
			err = ps.raced(q, err)
		}
		_ = ps.outbox.send(&wire.Abort{ID: id, Attempt: m.Attempt}) // a dead connection holds nothing
		return nil, e, err
	}
	if a.Err != nil {
		return nil, e, a.Err
	}
	b = &Buffer{ps: ps, id: id, attempt: m.Attempt, size: size}
	if a.Extent.Size < size {
		b.Abort()
		return nil, e, errs.New(errs.CodeProtocol, "object %v: asked for %d bytes, the extent has %d", id, size, a.Extent.Size)
	}
	return b, a.Extent, nil
}

// raced keeps the store's own error if it came together with the end of the wait.
func (ps *puts) raced(q *creation, err error) error {
	select {
	case a := <-q.ch:
		if a.Err != nil {
			return a.Err
		}
	default:
	}
	return err
}

func (ps *puts) awaitCreated(ctx context.Context, q *creation) (*wire.Created, error) {
	ps.waits()
	warn := time.NewTimer(ps.cfg.WarnAfter)
	defer warn.Stop()
	for waited := ps.cfg.WarnAfter; ; waited += ps.cfg.WarnAfter {
		select {
		case a := <-q.ch:
			return a, nil
		case <-ctx.Done():
			return nil, ctxError(ctx)
		case <-ps.dead:
			return nil, ps.cause
		case <-warn.C:
			ps.log.Warn("a create waits long for room in the object store", "waited", waited.String(), "object", q.m.ID, "bytes", q.m.Size)
			warn.Reset(ps.cfg.WarnAfter)
		}
	}
}

func (ps *puts) created(m *wire.Created) {
	if q, ok := ps.creates.take(m.Req); ok {
		q.ch <- m
	}
}

// Buffer is an object that is being written in the segment. It ends with Seal, SealReturn or Abort, and is for one
// goroutine.
type Buffer struct {
	ps      *puts
	id      ids.ObjectID
	attempt uint32
	size    uint64
	data    []byte
	ended   atomic.Bool
}

// ID is the object's id.
func (b *Buffer) ID() ids.ObjectID { return b.id }

// Size is the object's size in bytes.
func (b *Buffer) Size() uint64 { return b.size }

// Bytes is where to write; nil after the end.
func (b *Buffer) Bytes() []byte {
	if b.ended.Load() {
		return nil
	}
	return b.data
}

// Seal makes the object immutable and gives the handle on it. meta says how the bytes
// are laid out, refs are the references among them, whose handles the caller keeps until
// Seal returns.
func (b *Buffer) Seal(meta []byte, refs []ids.ObjectID) (*Handle, error) {
	v, err := b.end(meta, refs)
	if err != nil {
		return nil, err
	}
	r := &wire.Result{Kind: wire.ResultStored, Size: b.size, Value: v}
	h, _ := b.ps.handles.resolvedHandle(b.id, r)
	if err := b.ps.outbox.send(&wire.Seal{ID: b.id, Attempt: b.attempt, Size: b.size, Value: v}); err != nil {
		h.Release()
		return nil, err
	}
	return h, nil
}

// SealReturn is Seal for a task's return value or stream item, for which the worker has no handle.
func (b *Buffer) SealReturn(meta []byte, refs []ids.ObjectID) error {
	v, err := b.end(meta, refs)
	if err != nil {
		return err
	}
	return b.ps.outbox.send(&wire.Seal{ID: b.id, Attempt: b.attempt, Size: b.size, Value: v})
}

func (b *Buffer) end(meta []byte, refs []ids.ObjectID) (wire.Value, error) {
	if err := checkMeta(b.id, meta); err != nil {
		b.Abort()
		return wire.Value{}, err
	}
	if b.ended.Swap(true) {
		return wire.Value{}, errs.New(errs.CodeInvalid, "object %v: its buffer was sealed or aborted before", b.id)
	}
	b.data = nil
	return wire.Value{Meta: meta, Refs: refs}, nil
}

// Abort gives the extent back. After Seal or Abort it does nothing.
func (b *Buffer) Abort() {
	if b.ended.Swap(true) {
		return
	}
	b.data = nil
	_ = b.ps.outbox.send(&wire.Abort{ID: b.id, Attempt: b.attempt}) // a dead connection holds nothing
}
