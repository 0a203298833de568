package shell

import (
	"maps"
	"slices"
	"sync"

	"mobula/internal/ids"
	"mobula/objectstore/segment"
	"mobula/remote/transfer"
)

// memory is what the store has lent: where fetches put what arrives, and what it has served to others.
type memory struct {
	mu      sync.Mutex
	last    transfer.FetchID               // guarded by mu
	fetches map[transfer.FetchID]*fetching // guarded by mu
	expects map[uint64]*expected           // guarded by mu, by token
	served  map[serveKey]served            // guarded by mu
	closed  bool                           // guarded by mu: nothing is taken any more
}

type fetching struct {
	event transfer.Fetch
	dst   *segment.Room
	done  func(error)
	life  int // of the last core that has begun it; -1: none
}

// expected is where the chunks of a pull go.
type expected struct {
	conn transfer.ConnID
	dst  *segment.Room
	next int64
}

type serveKey struct {
	to    ids.Home
	token uint64
}

type served struct {
	data []byte
	done func()
}

// fetch notes a fetch, and numbers it. It is nil once all is over.
func (m *memory) fetch(ev transfer.Fetch, dst *segment.Room, done func(error)) *fetching {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return nil
	}
	if m.fetches == nil {
		m.fetches = make(map[transfer.FetchID]*fetching)
		m.expects = make(map[uint64]*expected)
	}
	m.last++
	ev.ID = m.last
	f := &fetching{ev, dst, done, -1}
	m.fetches[ev.ID] = f
	return f
}

// begin is false for a fetch that has ended, or that this life of the core has begun.
func (m *memory) begin(id transfer.FetchID, life int) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	f := m.fetches[id]
	if f == nil || f.life == life {
		return false
	}
	f.life = life
	return true
}

// take gives fetches back.
func (m *memory) take(which []transfer.FetchID) []*fetching {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []*fetching
	for _, id := range which {
		if f := m.fetches[id]; f != nil {
			out = append(out, f)
			delete(m.fetches, id)
		}
	}
	return out
}

// underWay lists the fetches in the order in which they were asked for.
func (m *memory) underWay() []*fetching {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []*fetching
	for _, id := range slices.Sorted(maps.Keys(m.fetches)) {
		out = append(out, m.fetches[id])
	}
	return out
}

func (m *memory) expect(e transfer.Expect) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if f := m.fetches[e.Fetch]; f != nil {
		m.expects[e.Token] = &expected{e.Conn, f.dst, e.Offset}
	}
}

func (m *memory) unexpect(token uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.expects, token)
}

// place gives the room of the next chunk of a pull; nil: that is not expected on this connection.
func (m *memory) place(c transfer.ConnID, chunk transfer.Chunk) *segment.Room {
	m.mu.Lock()
	defer m.mu.Unlock()
	e := m.expects[chunk.Token]
	if e == nil || e.conn != c || e.next != chunk.Offset || int64(chunk.Size) != min(transfer.ChunkSize, int64(len(e.dst.Bytes))-e.next) {
		return nil
	}
	e.next += int64(chunk.Size)
	return e.dst
}

// serve notes what the store has served. It is false once all is over.
func (m *memory) serve(k serveKey, s served) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return false
	}
	if m.served == nil {
		m.served = make(map[serveKey]served)
	}
	m.served[k] = s
	return true
}

// unserve gives back what the store has served; not ok if it has not yet.
func (m *memory) unserve(k serveKey) (s served, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s, ok = m.served[k]
	delete(m.served, k)
	return s, ok
}

// source gives the bytes of a chunk that is to be sent.
func (m *memory) source(w transfer.WriteChunk) []byte {
	m.mu.Lock()
	defer m.mu.Unlock()
	data := m.served[serveKey{w.To, w.Chunk.Token}].data
	if w.Relay != 0 {
		data = m.fetches[w.Relay].dst.Bytes
	}
	return data[w.Chunk.Offset:][:w.Chunk.Size]
}

// release forgets what an earlier core has expected, and gives back all that was served.
func (m *memory) release() []served {
	m.mu.Lock()
	defer m.mu.Unlock()
	all := slices.Collect(maps.Values(m.served))
	clear(m.served)
	clear(m.expects)
	return all
}

// close gives back everything, and takes nothing any more.
func (m *memory) close() ([]*fetching, []served) {
	m.mu.Lock()
	m.closed = true // nothing is added from here on
	m.mu.Unlock()
	return m.underWay(), m.release()
}
