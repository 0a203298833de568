package blobs

import (
	"slices"

	"mobula/internal/errs"
)

// fetch is a blob on its way here.
type fetch struct {
	number uint64
	place  Place
	size   uint64
	wants  []Want // whom it is for; the first one's node is asked for chunks. None is left only while it is stored

	room    bool              // Begin is asked for
	begun   bool              // and done
	next    uint64            // what was never pulled begins here
	again   []uint64          // offsets to pull once more
	flying  map[uint64]flight // by offset: chunks under way
	written uint64            // bytes
	storing bool              // all are
}

// flight is where a chunk is that is under way.
type flight uint8

const (
	pulled flight = iota // asked for
	taken                // it came, and is being written
)

// chunkAt is the size of the chunk at an offset.
func (f *fetch) chunkAt(offset uint64) uint64 { return min(ChunkSize, f.size-offset) }

// pulls tells whether there is more to ask for.
func (f *fetch) pulls() bool {
	return f.begun && !f.storing && (len(f.again) > 0 || f.next < f.size)
}

func (c *Core) fetch(number uint64) *fetch {
	at := slices.IndexFunc(c.fetches, func(f *fetch) bool { return f.number == number })
	if at < 0 {
		return nil // it was given up
	}
	return c.fetches[at]
}

func (c *Core) looked(ev Looked) {
	f := c.fetch(ev.Fetch)
	switch {
	case f == nil:
	case ev.Have:
		c.done(f)
	default:
		if f.place.Job == 0 {
			delete(c.cache, f.place.Hash) // what was there is damaged
		}
		if err := c.makeRoom(f); err != nil {
			c.giveUp(f, err)
			return
		}
		f.room = true
		c.emit(Begin{Fetch: f.number, Place: f.place, Size: f.size})
	}
}

func (c *Core) begun(ev Begun) {
	f := c.fetch(ev.Fetch)
	switch {
	case f == nil:
		if ev.Err == nil {
			c.emit(Drop{Fetch: ev.Fetch})
		}
	case ev.Err != nil:
		c.giveUp(f, ev.Err)
	default:
		f.begun = true
		c.maybeStore(f)
	}
}

// pull asks for chunks while few are under way. The fetches take turns.
func (c *Core) pull() {
	for idle := 0; c.flying < Window && idle < len(c.fetches); {
		c.turn %= len(c.fetches)
		f := c.fetches[c.turn]
		c.turn++
		if !f.pulls() {
			idle++
			continue
		}
		idle = 0
		offset := f.next
		if n := len(f.again); n > 0 {
			offset = f.again[n-1]
			f.again = f.again[:n-1]
		} else {
			f.next += f.chunkAt(offset)
		}
		f.flying[offset] = pulled
		c.flying++
		c.emit(Pull{Node: f.wants[0].From, Key: f.wants[0].Key, Hash: f.place.Hash, Offset: offset, Size: f.chunkAt(offset)})
	}
}

// chunk takes what came. What nobody waits for is dropped: it was asked of a node that has been given up, or twice.
func (c *Core) chunk(ev Chunk) {
	for _, f := range c.fetches {
		at, under := f.flying[ev.Offset]
		if !under || at != pulled || f.place.Hash != ev.Hash {
			continue
		}
		w := f.wants[0]
		if w.From != ev.Node || w.Key != ev.Key {
			continue
		}
		err := ev.Err
		if want := f.chunkAt(ev.Offset); err == nil && uint64(len(ev.Data)) != want {
			err = errs.New(errs.CodeProtocol, "node %s sent %d bytes of %v at %d, where %d were asked for", c.nameOf(ev.Node), len(ev.Data), w.Key.Kind, ev.Offset, want)
		}
		if err != nil {
			c.leave(f, func(o Want) bool { return o == w }, err)
			return
		}
		f.flying[ev.Offset] = taken
		c.emit(Write{Fetch: f.number, Offset: ev.Offset, Data: ev.Data})
		return
	}
}

func (c *Core) written(ev Written) {
	f := c.fetch(ev.Fetch)
	if f == nil {
		return
	}
	delete(f.flying, ev.Offset)
	c.flying--
	if ev.Err != nil {
		c.emit(Drop{Fetch: f.number})
		c.giveUp(f, ev.Err)
		return
	}
	f.written += f.chunkAt(ev.Offset)
	c.maybeStore(f)
}

func (c *Core) maybeStore(f *fetch) {
	if f.written == f.size {
		f.storing = true
		c.emit(Store{Fetch: f.number})
	}
}

func (c *Core) stored(ev Stored) {
	f := c.fetch(ev.Fetch)
	switch {
	case f == nil:
	case ev.Err != nil:
		c.giveUp(f, ev.Err)
	default:
		c.done(f)
	}
}

// done answers those who wanted a blob that is here.
func (c *Core) done(f *fetch) {
	c.remove(f)
	if f.place.Job == 0 {
		c.keep(f)
	}
	for _, w := range f.wants {
		c.emit(Have{Key: w.Key, Place: f.place})
	}
}

// giveUp fails all who wanted a blob.
func (c *Core) giveUp(f *fetch, err *errs.Error) {
	c.remove(f)
	for _, w := range f.wants {
		c.emit(Failed{Key: w.Key, Err: err})
	}
}

func (c *Core) remove(f *fetch) {
	c.flying -= len(f.flying)
	c.fetches = slices.DeleteFunc(c.fetches, func(o *fetch) bool { return o == f })
}

// leave fails some of those who wanted a blob. If the node that was asked for chunks was theirs, the next one is asked for what it has not sent; after the
// last of them the fetch is given up, unless all of it is here.
func (c *Core) leave(f *fetch, which func(Want) bool, err *errs.Error) {
	if len(f.wants) == 0 {
		return
	}
	first := f.wants[0]
	f.wants = slices.DeleteFunc(f.wants, func(w Want) bool {
		if which(w) {
			c.emit(Failed{Key: w.Key, Err: err})
		}
		return which(w)
	})
	switch {
	case f.storing:
	case len(f.wants) == 0:
		if f.begun {
			c.emit(Drop{Fetch: f.number})
		}
		c.remove(f)
	case f.wants[0] != first:
		for offset, at := range f.flying {
			if at == pulled {
				delete(f.flying, offset)
				c.flying--
				f.again = append(f.again, offset)
			}
		}
		slices.Sort(f.again)
	}
}
