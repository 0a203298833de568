package client

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/wire"
)

// pending is the table of one kind of cold question, by its number.
type pending[T any] struct {
	mu sync.Mutex
	m  map[uint64]T // guarded by mu
}

func (p *pending[T]) add(n uint64, v T) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.m == nil {
		p.m = make(map[uint64]T)
	}
	p.m[n] = v
}

func (p *pending[T]) take(n uint64) (T, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	v, ok := p.m[n]
	delete(p.m, n)
	return v, ok
}

func (p *pending[T]) each(f func(T)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, v := range p.m {
		f(v)
	}
}

// creation is a Create that was not answered yet.
type creation struct {
	m  *wire.Create
	ch chan *wire.Created // capacity 1
}

// Create asks the store for size bytes under id and waits for them: under memory
// pressure until the store has made room. Attempt and task are those of ctx. When ctx
// ends the wish is withdrawn. Errors: ErrObjectTooLarge, ErrStoreFull, ErrOutOfDisk from
// the store, the cause of ctx, ErrShutdown, ErrOwnerDied.
func (c *Client) Create(ctx context.Context, id ids.ObjectID, size uint64) (*Buffer, error) {
	b, e, err := c.allocate(ctx, id, size)
	if err != nil || b.exists {
		return b, err
	}
	if b.data, err = c.mem().Map(e, true); err != nil {
		b.Abort()
		return nil, err
	}
	b.data = b.data[:size:size]
	return b, nil
}

// Writer is a Memory that knows a faster way than a copy to what Map gives: several
// threads, or pages made with the bytes in them.
type Writer interface {
	Write(e wire.Extent, src []byte) error
}

// CreateFrom is Create of an object that holds src, which is written when it returns. All that is
// left to do with the buffer is to seal or abort it.
func (c *Client) CreateFrom(ctx context.Context, id ids.ObjectID, src []byte) (*Buffer, error) {
	m, ok := c.mem().(Writer)
	if !ok {
		b, err := c.Create(ctx, id, uint64(len(src)))
		if err == nil && !b.exists {
			copy(b.data, src)
		}
		return b, err
	}
	b, e, err := c.allocate(ctx, id, uint64(len(src)))
	if err != nil || b.exists {
		return b, err
	}
	if err := m.Write(e, src); err != nil {
		b.Abort()
		return nil, err
	}
	return b, nil
}

// allocate asks the store for an extent.
func (c *Client) allocate(ctx context.Context, id ids.ObjectID, size uint64) (b *Buffer, e wire.Extent, err error) {
	if err := c.Err(); err != nil {
		return nil, e, err
	}
	m := &wire.Create{Req: c.req.Add(1), ID: id, Size: size}
	if tc := FromContext(ctx); tc != nil && tc.Client == c && tc.Spec != nil {
		m.Attempt, m.Task = tc.Attempt, tc.Task
	}
	q := &creation{m: m, ch: make(chan *wire.Created, 1)}
	c.creates.add(m.Req, q)
	if c.rel.waiting.Load() > 0 {
		c.Flush() // this client's own pins may be what the store waits for
	}
	if err := c.send(m); err != nil {
		c.creates.take(m.Req)
		return nil, e, err
	}
	a, err := c.awaitCreated(ctx, q)
	if err != nil {
		if _, open := c.creates.take(m.Req); !open { // answered meanwhile, or about to be
			err = c.raced(q, err)
		}
		_ = c.send(&wire.Abort{ID: id, Attempt: m.Attempt}) // a dead connection holds nothing
		return nil, e, err
	}
	if a.Err != nil {
		return nil, e, a.Err
	}
	b = &Buffer{c: c, id: id, attempt: m.Attempt, size: size, exists: a.Exists}
	if !a.Exists && a.Extent.Size < size {
		b.Abort()
		return nil, e, errs.New(errs.CodeProtocol, "object %v: asked for %d bytes, the extent has %d", id, size, a.Extent.Size)
	}
	return b, a.Extent, nil
}

// raced keeps the store's own error if it came together with the end of the wait.
func (c *Client) raced(q *creation, err error) error {
	select {
	case a := <-q.ch:
		if a.Err != nil {
			return a.Err
		}
	default:
	}
	return err
}

func (c *Client) awaitCreated(ctx context.Context, q *creation) (*wire.Created, error) {
	c.waits()
	warn := time.NewTimer(c.cfg.WarnAfter)
	defer warn.Stop()
	for waited := c.cfg.WarnAfter; ; waited += c.cfg.WarnAfter {
		select {
		case a := <-q.ch:
			return a, nil
		case <-ctx.Done():
			return nil, ctxError(ctx)
		case <-c.dead:
			return nil, c.cause
		case <-warn.C:
			c.log.Warn("a create waits long for room in the object store", "waited", waited.String(), "object", q.m.ID, "bytes", q.m.Size)
			warn.Reset(c.cfg.WarnAfter)
		}
	}
}

func (c *Client) created(m *wire.Created) {
	if q, ok := c.creates.take(m.Req); ok {
		q.ch <- m
	}
}

// Buffer is an object that is being written in the segment. It ends by Seal, SealReturn
// or Abort; it is one goroutine's.
type Buffer struct {
	c       *Client
	id      ids.ObjectID
	attempt uint32
	size    uint64
	exists  bool
	data    []byte
	ended   atomic.Bool
}

// ID is the object's id.
func (b *Buffer) ID() ids.ObjectID { return b.id }

// Size is the object's size in bytes.
func (b *Buffer) Size() uint64 { return b.size }

// Exists tells that the object is sealed already, by an earlier attempt: nothing need be
// written.
func (b *Buffer) Exists() bool { return b.exists }

// Bytes is where to write, nil after the end. Of an object that exists it is scratch
// memory, made on demand, which Seal drops.
func (b *Buffer) Bytes() []byte {
	if b.ended.Load() {
		return nil
	}
	if b.exists && b.data == nil {
		b.data = make([]byte, b.size)
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
	if b.exists {
		return b.c.Bind(b.id), nil
	}
	h, _ := b.c.resolvedHandle(b.id, r)
	if err := b.c.send(&wire.Seal{ID: b.id, Attempt: b.attempt, Size: b.size, Value: v}); err != nil {
		h.Release()
		return nil, err
	}
	return h, nil
}

// SealReturn is Seal of a task's return value or stream item, which the worker itself
// has no handle on.
func (b *Buffer) SealReturn(meta []byte, refs []ids.ObjectID) error {
	v, err := b.end(meta, refs)
	if err != nil || b.exists {
		return err
	}
	return b.c.send(&wire.Seal{ID: b.id, Attempt: b.attempt, Size: b.size, Value: v})
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
	if !b.exists {
		_ = b.c.send(&wire.Abort{ID: b.id, Attempt: b.attempt}) // a dead connection holds nothing
	}
}
