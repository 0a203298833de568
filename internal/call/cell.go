package call

import (
	"runtime"
	"sync/atomic"
	"weak"

	"mobula/internal/client"
	"mobula/internal/errs"
	"mobula/internal/ids"
)

// Cell is what all copies of a reference share; when the last copy is garbage the object's handle is released. The
// handle belongs to a life, which outlives the cell. A nil Cell names nothing.
//
// runtime.AddCleanup costs some 450 ns, as much as all the rest of a call. So sixteen references to values that
// are known to be small share a cleanup: they lie in one block of memory, which is garbage when all of them are. A
// dropped reference is then released a little late. That costs little: the values are small, and references made
// in a loop usually die together. The block being filled is held weakly, so a last, partly filled block is freed
// too.
type Cell struct {
	life *life
	slot uint32
}

// life is the hold on the objects of one cell or block of cells.
type life struct {
	client  *client.Client // nil: unbound, or failed
	from    *Function      // whose results they are; nil if no function's
	err     error          // why there is no object
	room    *client.Room   // room of an actor with MaxPendingCalls, if this process knows the limit
	self    bool           // refers to the actor that the code runs in, without keeping it alive
	actor   bool           // unbound is the id of an actor
	unbound ids.ObjectID   // as decoded; until bound
	held    []atomic.Pointer[client.Handle]
}

type loneLife struct {
	life
	slot [1]atomic.Pointer[client.Handle]
}

const perBlock = 16

type block struct {
	cells [perBlock]Cell
	used  atomic.Uint32
	life  *life
}

type blockLife struct {
	life
	slots [perBlock]atomic.Pointer[client.Handle]
}

// nursery allocates cells in blocks.
type nursery struct {
	current atomic.Pointer[weak.Pointer[block]]
}

// newCell takes over the handle.
func newCell(c *client.Client, h *client.Handle, from *Function) *Cell {
	l := &loneLife{life: life{client: c, from: from}}
	l.held = l.slot[:]
	l.held[0].Store(h)
	out := &Cell{life: &l.life}
	runtime.AddCleanup(out, (*life).release, &l.life)
	return out
}

// failedCell is a reference to an object that was never made.
func failedCell(err error) *Cell { return &Cell{life: &life{err: err}} }

// cell takes over the handle of a small object.
func (n *nursery) cell(c *client.Client, h *client.Handle, from *Function) *Cell {
	w := n.current.Load()
	if w != nil {
		if b := w.Value(); b != nil && b.life.client == c {
			if i := b.used.Add(1) - 1; i < perBlock {
				return b.fill(i, h)
			}
		}
	}
	l := &blockLife{life: life{client: c, from: from}}
	l.held = l.slots[:]
	b := &block{life: &l.life}
	runtime.AddCleanup(b, (*life).release, &l.life)
	b.used.Store(1)
	out := b.fill(0, h)
	fresh := weak.Make(b)
	n.current.CompareAndSwap(w, &fresh) // a block set by another goroutine will do too
	return out
}

func (b *block) fill(i uint32, h *client.Handle) *Cell {
	b.life.held[i].Store(h)
	out := &b.cells[i]
	out.life, out.slot = b.life, i
	return out
}

func (l *life) release() {
	for i := range l.held {
		if h := l.held[i].Swap(nil); h != nil {
			h.Release()
		}
	}
}

// Release gives up the object; later uses fail. Releasing again does nothing.
func (c *Cell) Release() {
	if c == nil || c.life.held == nil {
		return
	}
	if h := c.life.held[c.slot].Swap(nil); h != nil {
		h.Release()
	}
}

// handle is the object's handle, valid while c is kept alive.
func (c *Cell) handle() (*client.Handle, error) {
	if c == nil {
		return nil, errNil
	}
	if c.life.held == nil {
		if c.life.err != nil {
			return nil, c.life.err
		}
		return nil, errUnbound
	}
	if h := c.life.held[c.slot].Load(); h != nil {
		return h, nil
	}
	return nil, errReleased
}

// handleOf is handle for use with client c.
func (c *Cell) handleOf(want *client.Client) (*client.Handle, error) {
	h, err := c.handle()
	if err == nil && c.life.client != want {
		return nil, errForeign
	}
	return h, err
}

// Err says why there is no object, if the call could not even be submitted.
func (c *Cell) Err() error {
	_, err := c.handle()
	return err
}

// Ready tells whether the object is known here to have been made, or failed. It never waits.
func (c *Cell) Ready() bool {
	h, err := c.handle()
	ready := err != nil || h.Ready()
	runtime.KeepAlive(c)
	return ready
}

// ID names the object; empty: there is none.
func (c *Cell) ID() string {
	id, err := c.objectID()
	if err != nil || id.IsZero() {
		return ""
	}
	return id.String()
}

// ActorID names the actor whose constructor's result the object is; empty: there is none.
func (c *Cell) ActorID() string {
	id, err := c.objectID()
	if err != nil || id.IsZero() {
		return ""
	}
	return id.Task.String()
}

func (c *Cell) objectID() (ids.ObjectID, error) {
	if c == nil {
		return ids.ObjectID{}, nil
	}
	h, err := c.handle()
	if err != nil {
		return ids.ObjectID{}, err
	}
	id := h.ID()
	runtime.KeepAlive(c)
	return id, nil
}

// passed is objectID of a reference that leaves this process.
func (c *Cell) passed() (ids.ObjectID, error) {
	if c == nil {
		return ids.ObjectID{}, nil
	}
	h, err := c.handle()
	if err != nil {
		return ids.ObjectID{}, err
	}
	id := h.Passed()
	runtime.KeepAlive(c)
	return id, nil
}

var (
	errNil      = errs.New(errs.CodeInvalid, "a zero reference: it names no object")
	errUnbound  = errs.New(errs.CodeInvalid, "a reference that was decoded outside the runtime")
	errReleased = errs.New(errs.CodeObjectFreed, "the reference was released")
	errForeign  = errs.New(errs.CodeInvalid, "the reference belongs to another cluster or process: pass it as an argument, or inside one")
)
