package world

import (
	"errors"
	"hash/crc32"
	"maps"
	"slices"
	"time"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/objectstore"
	"mobula/objectstore/alloc"
	"mobula/remote/transfer"
	"mobula/wire"
)

// transferShell is the shell of the core that moves objects between nodes, and the memory that the store has lent to it.
type transferShell struct {
	*part[transfer.Event, transfer.Effect]
	last    transfer.FetchID
	conns   transfer.ConnID
	fetches map[transfer.FetchID]*fetching
	expects map[uint64]*expected
	served  map[serveKey]*serving
	ends    map[transfer.ConnID]*end
	timer   *timer
}

// fetching is an object that is imported.
type fetching struct {
	ev    transfer.Fetch
	to    memoryAt
	done  func(error)
	begun bool // by this core
}

// memoryAt is memory of the store.
type memoryAt struct {
	place  ids.JobID
	extent wire.Extent
}

// expected is where the chunks of a pull go.
type expected struct {
	conn transfer.ConnID
	to   memoryAt
	next int64
}

type serveKey struct {
	to    ids.Home
	token uint64
}

// serving is an object that the store has pinned for another node.
type serving struct {
	at   memoryAt
	done func()
}

// chunk is what goes over a line of it.
type chunk struct {
	transfer.Chunk
	data []byte
}

func (n *Node) startTransfer() {
	t := &transferShell{
		fetches: make(map[transfer.FetchID]*fetching), expects: make(map[uint64]*expected), served: make(map[serveKey]*serving), ends: make(map[transfer.ConnID]*end),
	}
	n.transfer = t
	t.part = &part[transfer.Event, transfer.Effect]{build: t.buildCore, do: t.carryOut, poisoned: t.poison}
	startPart(n, kindTransfer, "transfer", t.part)
}

// buildCore makes a core. Nothing is left of what the one before it had begun: all fetches begin anew.
func (t *transferShell) buildCore(restart int) (core[transfer.Event, transfer.Effect], []transfer.Event) {
	cfg := transfer.DefaultConfig(t.n.home)
	cfg.First = t.n.numbers.lives<<48 + uint64(restart)<<32
	c := transferCore{transfer.NewCore(cfg), t}
	if restart == 0 {
		return c, nil
	}
	for _, id := range slices.Sorted(maps.Keys(t.ends)) {
		t.ends[id].close()
		t.closed(id, errBroke)
	}
	clear(t.expects)
	for _, k := range t.sortedServed() {
		t.release(k)
	}
	var again []transfer.Event
	for _, id := range slices.Sorted(maps.Keys(t.fetches)) {
		f := t.fetches[id]
		f.begun = false
		if hand, ok := t.hand.(transfer.Fetch); !ok || hand.ID != id {
			again = append(again, f.ev)
		}
	}
	return c, again
}

// poison answers an event that is dropped.
func (t *transferShell) poison(ev transfer.Event) {
	switch ev := ev.(type) {
	case transfer.Fetch:
		t.finish(transfer.Finish{Fetches: []transfer.FetchID{ev.ID}, Err: errPoisoned})
	case transfer.Served:
		t.release(serveKey{ev.To, ev.Token})
	}
}

// transferCore drops a fetch that this core has begun: it was begun when the core was built, while its event was on the way.
type transferCore struct {
	*transfer.Core
	t *transferShell
}

func (c transferCore) Step(now int64, ev transfer.Event) []transfer.Effect {
	if f, ok := ev.(transfer.Fetch); ok {
		x := c.t.fetches[f.ID]
		if x == nil || x.begun {
			return nil
		}
		x.begun = true
	}
	return slices.Clone(c.Core.Step(now, ev))
}

func (t *transferShell) sortedServed() []serveKey {
	return slices.SortedFunc(maps.Keys(t.served), func(a, b serveKey) int {
		if a.to != b.to {
			return int(a.to) - int(b.to)
		}
		return int(a.token) - int(b.token)
	})
}

// fetch reads an object that other nodes have into the store's memory.
func (t *transferShell) fetch(e objectstore.Import, done func(error)) {
	if e.Cold {
		if t.n.memory.short {
			done(errs.New(errs.CodeSegmentUnavailable, "the machine has no more memory"))
			return
		}
		t.n.memory.reserve(e.Place, alloc.Range{Off: e.Extent.Off, Size: e.Extent.Size})
	}
	t.last++
	ev := transfer.Fetch{
		ID: t.last, Object: transfer.Object{ID: e.ID, Attempt: e.Attempt}, Size: int64(e.Extent.Size), From: append([]ids.Home{e.From}, e.Others...),
	}
	t.fetches[ev.ID] = &fetching{ev: ev, to: memoryAt{e.Place, e.Extent}, done: done}
	t.box.put(ev)
}

// serve gives another node what it has asked the store for.
func (t *transferShell) serve(e objectstore.Exported, done func()) {
	k := serveKey{e.To, e.Token}
	t.served[k] = &serving{memoryAt{e.Place, e.Extent}, done}
	var err error
	if e.Err != nil {
		err = e.Err
	}
	t.box.put(transfer.Served{To: e.To, Token: e.Token, Size: int64(e.Extent.Size), Failed: err != nil, Missing: errors.Is(err, errs.ErrObjectLost)})
}

// release gives back what the store has served, or tells it that it need not.
func (t *transferShell) release(k serveKey) {
	if s := t.served[k]; s != nil {
		delete(t.served, k)
		s.done()
	} else {
		t.n.store.box.put(objectstore.ExportDone{To: k.to, Token: k.token})
	}
}

func (t *transferShell) carryOut(f transfer.Effect) {
	switch f := f.(type) {
	case transfer.Dial:
		t.dial(t.n.w.node(f.Peer))
	case transfer.Close:
		if e := t.ends[f.Conn]; e != nil {
			e.close()
			t.closed(f.Conn, f.Err)
		}
	case transfer.Write:
		if e := t.ends[f.Conn]; e != nil {
			e.write(f.Frame)
		}
	case transfer.WriteChunk:
		t.writeChunk(f)
	case transfer.Expect:
		if x := t.fetches[f.Fetch]; x != nil {
			t.expects[f.Token] = &expected{f.Conn, x.to, f.Offset}
		}
	case transfer.Unexpect:
		delete(t.expects, f.Token)
	case transfer.Export:
		t.n.store.box.put(objectstore.Export{To: f.To, Token: f.Token, ID: f.Object.ID, Attempt: f.Object.Attempt})
	case transfer.Release:
		t.release(serveKey{f.To, f.Token})
	case transfer.Finish:
		t.finish(f)
	case transfer.After:
		if t.timer != nil {
			t.timer.stop()
		}
		t.timer = t.after(f.Delay, transfer.Timer{})
	default:
		t.n.w.fail("the transfer asks for a %T, which nobody does", f)
	}
}

// finish ends fetches of one object, whose bytes are in the memory of the first.
func (t *transferShell) finish(f transfer.Finish) {
	m := t.n.memory
	var first *fetching
	for _, id := range f.Fetches {
		x := t.fetches[id]
		delete(t.fetches, id)
		if first == nil {
			first = x
		} else if f.Err == nil {
			copy(m.at(x.to.place, x.to.extent), m.at(first.to.place, first.to.extent))
		}
		x.done(f.Err)
	}
}

func (t *transferShell) dial(to *Node) {
	t.n.dial(to, dialMost, func(err error) {
		if err != nil {
			t.box.put(transfer.DialFailed{Peer: to.home, Err: err})
			return
		}
		mine, theirs := t.n.w.connect(t.n, to, "objects")
		t.opened(mine, true)
		to.transfer.opened(theirs, false)
	})
}

func (t *transferShell) opened(e *end, dialed bool) {
	t.conns++
	id := t.conns
	t.ends[id] = e
	e.take = func(ev any) { t.arrived(id, ev) }
	e.hungUp = func(err error) { t.closed(id, err) }
	t.box.put(transfer.Connected{Conn: id, Peer: e.other().n.home, Dialed: dialed})
}

func (t *transferShell) closed(id transfer.ConnID, err error) {
	if t.ends[id] != nil {
		delete(t.ends, id)
		t.box.put(transfer.Closed{Conn: id, Err: err})
	}
}

// chunkTime is how long a chunk waits at most until it is written.
const chunkTime = 500 * time.Microsecond

// writeChunk sends a chunk out of memory that has to stay as it is until then.
func (t *transferShell) writeChunk(f transfer.WriteChunk) {
	e := t.ends[f.Conn]
	if e == nil {
		return
	}
	t.n.w.after(t.n.w.rng.Int64N(int64(chunkTime)), func() {
		if !e.open || t.ends[f.Conn] != e {
			return
		}
		var at memoryAt
		if f.Relay != 0 {
			at = t.fetches[f.Relay].to
		} else if s := t.served[serveKey{f.To, f.Chunk.Token}]; s != nil {
			at = s.at
		} else {
			t.n.w.fail("node %v sends node %v what its store has not pinned", t.n.home, f.To)
		}
		data := slices.Clone(t.n.memory.touch(at.place, at.extent)[f.Chunk.Offset:][:f.Chunk.Size])
		c := chunk{f.Chunk, data}
		if f.Unsummed {
			c.Sum = crc32.ChecksumIEEE(data)
		}
		e.write(c)
		t.box.put(transfer.ChunkWritten{Conn: f.Conn})
	})
}

// arrived takes what comes on a line. A chunk goes to its place.
func (t *transferShell) arrived(id transfer.ConnID, ev any) {
	c, ok := ev.(chunk)
	if !ok {
		t.box.put(transfer.Got{Conn: id, Frame: ev.(transfer.Frame)})
		return
	}
	x := t.expects[c.Token]
	if x == nil || x.conn != id || x.next != c.Offset || c.Sum != crc32.ChecksumIEEE(c.data) {
		t.ends[id].close()
		t.closed(id, transfer.ErrProtocol)
		return
	}
	copy(t.n.memory.at(x.to.place, x.to.extent)[x.next:], c.data)
	x.next += int64(c.Size)
	t.box.put(transfer.ChunkRead{Conn: id, Chunk: c.Chunk})
}
