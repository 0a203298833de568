package transfer

import (
	"cmp"
	"container/heap"
	"errors"
	"fmt"
	"hash/fnv"
	"time"

	"mobula/internal/ids"
)

// world is nodes and a network between them, in virtual time. Each node has a link of its own, of one rate each way.
type world struct {
	fail    func(format string, args ...any)
	now     int64
	due     dueHeap
	seq     int
	nodes   []*node // by home, from 1
	rate    int64   // bytes a second
	latency time.Duration
	jitter  func() time.Duration // is added to it; nil: nothing
	conns   ConnID
}

// node is a core, and a shell and a store of tests.
type node struct {
	w        *world
	home     ids.Home
	core     *Core
	up, down int64    // when the link is free
	inbox    []func() // what it does when it goes on
	stopped  bool
	dead     bool
	cut      bool // nothing can be dialed, to or from it
	has      map[Object]int64
	since    map[Object]int64 // when it came
	pins     map[sendKey]Object
	memory   map[FetchID]*memory
	fetches  FetchID
	ends     map[ConnID]*end
	timer    int
	sent     int64         // bytes of chunks
	slow     int64         // what it takes in a second, if that is less than what the network carries
	restores time.Duration // until the store answers
	unread   int           // so many times it answers that the object cannot be read
}

// memory is where a fetch puts what arrives.
type memory struct {
	object  Object
	size    int64
	got     int64
	arrived int64 // bytes, all in all
	readers int
	over    bool
	err     error
	begun   int64 // when; the first of several that ask for the object at once
	ended   int64
	from    []ids.Home
}

// end is a node's end of a connection.
type end struct {
	id      ConnID
	node    *node
	other   *end
	open    bool
	last    int64 // when the last thing that was sent from here arrives
	expects map[uint64]*expected
	reads   *memory
	writing bool
}

type expected struct {
	memory *memory
	fetch  FetchID
	next   int64
}

type dueItem struct {
	at  int64
	seq int
	do  func()
}

type dueHeap []dueItem

func (h dueHeap) Len() int { return len(h) }
func (h dueHeap) Less(i, j int) bool {
	return cmp.Or(cmp.Compare(h[i].at, h[j].at), h[i].seq-h[j].seq) < 0
}
func (h dueHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *dueHeap) Push(x any)   { *h = append(*h, x.(dueItem)) }
func (h *dueHeap) Pop() any {
	last := (*h)[len(*h)-1]
	*h = (*h)[:len(*h)-1]
	return last
}

// newWorld makes nodes of homes 1 to n, on a network of 1 GiB/s.
func newWorld(fail func(string, ...any), n int, change ...func(*Config)) *world {
	w := &world{fail: fail, rate: 1 << 30, latency: 100 * time.Microsecond}
	for i := range n {
		cfg := DefaultConfig(ids.Home(i + 1))
		for _, f := range change {
			f(&cfg)
		}
		w.nodes = append(w.nodes, &node{
			w: w, home: cfg.Self, core: NewCore(cfg),
			has: map[Object]int64{}, since: map[Object]int64{}, pins: map[sendKey]Object{}, memory: map[FetchID]*memory{}, ends: map[ConnID]*end{},
		})
	}
	return w
}

func (w *world) node(h ids.Home) *node { return w.nodes[h-1] }

func (w *world) at(at int64, do func()) {
	w.seq++
	heap.Push(&w.due, dueItem{max(at, w.now), w.seq, do})
}

// takes is how long a message is on its way.
func (w *world) takes() time.Duration {
	if w.jitter == nil {
		return w.latency
	}
	return w.latency + w.jitter()
}

func (w *world) after(d time.Duration, do func()) { w.at(w.now+int64(d), do) }

// run lets things happen until nothing is due before a time, or until done.
func (w *world) run(d time.Duration, done func() bool) {
	for end := w.now + int64(d); len(w.due) > 0 && w.due[0].at <= end; {
		if done != nil && done() {
			return
		}
		it := heap.Pop(&w.due).(dueItem)
		w.now = it.at
		it.do()
	}
}

// sumOf stands for the bytes of an object at an offset.
func sumOf(o Object, offset int64) uint32 {
	h := fnv.New32a()
	fmt.Fprint(h, o, offset)
	return h.Sum32()
}

// fetch has a node ask for an object.
func (n *node) fetch(o Object, size int64, from ...ids.Home) *memory {
	n.fetches++
	m := &memory{object: o, size: size, from: from, begun: n.w.now}
	for _, x := range n.memory {
		if x.object == o && !x.over {
			m.begun = min(m.begun, x.begun)
		}
	}
	n.memory[n.fetches] = m
	n.step(Fetch{ID: n.fetches, Object: o, Size: size, From: from})
	return m
}

// step has the core step.
func (n *node) step(ev Event) {
	n.when(func() {
		for _, f := range append([]Effect{}, n.core.Step(n.w.now, ev)...) {
			n.do(f)
		}
	})
}

// when does something unless the node is dead: at once, or when it is not stopped any more.
func (n *node) when(do func()) {
	switch {
	case n.dead:
	case n.stopped:
		n.inbox = append(n.inbox, do)
	default:
		do()
	}
}

// stop is SIGSTOP, for a time.
func (n *node) stop(d time.Duration) {
	if n.stopped {
		return
	}
	n.stopped = true
	n.w.after(d, func() {
		n.stopped = false
		inbox := n.inbox
		n.inbox = nil
		for _, do := range inbox {
			do()
		}
	})
}

// kill ends a node. Without a word its connections stay open to the others.
func (n *node) kill(word bool) {
	if n.dead = true; word {
		for _, e := range sorted(n.ends) {
			n.w.breakOff(e, errReset)
		}
	}
}

var (
	errReset       = errors.New("the connection broke")
	errUnreachable = errors.New("the node cannot be reached")
)

// breakOff cuts a connection: what is under way is lost.
func (w *world) breakOff(e *end, err error) {
	for _, x := range []*end{e, e.other} {
		if x.open {
			x.open = false
			w.after(0, func() { x.node.when(func() { x.closed(err) }) })
		}
	}
}

// closed ends what the shell does for a connection.
func (e *end) closed(err error) {
	if e.reads != nil {
		e.reads.readers--
		e.reads = nil
	}
	clear(e.expects)
	delete(e.node.ends, e.id)
	e.node.step(Closed{e.id, err})
}

// arrives has something happen at the other end, in order.
func (e *end) arrives(at int64, do func(*end)) {
	e.last = max(e.last, at)
	e.node.w.at(e.last, func() {
		if e.open && !e.other.node.dead {
			do(e.other)
		}
	})
}

func (n *node) do(f Effect) {
	w := n.w
	switch f := f.(type) {
	case Dial:
		w.after(3*w.takes(), func() { n.dial(f.Peer) })
	case Close:
		if e := n.ends[f.Conn]; e != nil && e.open {
			w.breakOff(e, f.Err)
		}
	case Write:
		if e := n.ends[f.Conn]; e != nil && e.open {
			e.arrives(w.now+int64(w.takes()), func(o *end) { o.node.step(Got{o.id, f.Frame}) })
		}
	case WriteChunk:
		if e := n.ends[f.Conn]; e != nil && e.open {
			e.send(f)
		}
	case Expect:
		if e := n.ends[f.Conn]; e != nil && e.open {
			m := n.memory[f.Fetch]
			if m.over || m.got != f.Offset {
				w.fail("node %v: a fetch is to go on at %d, it has %d (over: %v)", n.home, f.Offset, m.got, m.over)
			}
			e.expects[f.Token] = &expected{m, f.Fetch, f.Offset}
		}
	case Unexpect:
		for _, e := range n.ends {
			delete(e.expects, f.Token)
		}
	case Export:
		k := sendKey{f.To, f.Token}
		if _, again := n.pins[k]; again {
			w.fail("node %v exports twice for %v", n.home, k)
		}
		n.pins[k] = f.Object
		w.after(max(n.restores, 20*time.Microsecond), func() {
			if n.unread > 0 {
				n.unread--
				n.step(Served{To: f.To, Token: f.Token, Failed: true})
				return
			}
			size, ok := n.has[f.Object]
			n.step(Served{To: f.To, Token: f.Token, Size: size, Failed: !ok, Missing: !ok})
		})
	case Release:
		delete(n.pins, sendKey{f.To, f.Token})
	case Finish:
		n.finish(f)
	case After:
		n.timer++
		t := n.timer
		w.after(f.Delay, func() {
			if t == n.timer {
				n.step(Timer{})
			}
		})
	}
}

func (n *node) dial(to ids.Home) {
	w, o := n.w, n.w.node(to)
	if n.dead {
		return
	}
	if o.dead || o.cut || n.cut {
		n.step(DialFailed{to, errUnreachable})
		return
	}
	w.conns += 2
	a := &end{id: w.conns, node: n, open: true, expects: map[uint64]*expected{}}
	b := &end{id: w.conns + 1, node: o, other: a, open: true, expects: map[uint64]*expected{}}
	a.other = b
	n.ends[a.id], o.ends[b.id] = a, b
	n.step(Connected{Conn: a.id, Peer: to, Dialed: true})
	o.step(Connected{Conn: b.id, Peer: n.home})
}

// local tells whether both nodes are on one machine, of two nodes each: there chunks have no checksums.
func (e *end) local() bool { return (e.node.home+1)/2 == (e.other.node.home+1)/2 }

// send is a chunk on its way.
func (e *end) send(f WriteChunk) {
	n, w, c := e.node, e.node.w, f.Chunk
	if e.writing {
		w.fail("node %v writes two chunks at once on a connection", n.home)
	}
	e.writing = true
	var object Object
	if f.Relay != 0 {
		m := n.memory[f.Relay]
		object = m.object
		if m.over || c.Offset+int64(c.Size) > m.got {
			w.fail("node %v passes on what it does not have: to %d of %d (over: %v)", n.home, c.Offset+int64(c.Size), m.got, m.over)
		}
		e.reads = m
		m.readers++
	} else {
		o, pinned := n.pins[sendKey{f.To, c.Token}]
		if _, ok := n.has[o]; !pinned || !ok {
			w.fail("node %v sends %v, which is not pinned", n.home, o)
		}
		object = o
	}
	switch {
	case e.local():
		c.Sum = 0
	case f.Unsummed:
		c.Sum = sumOf(object, c.Offset)
	}
	to := e.other.node
	rate := w.rate
	if to.slow > 0 {
		rate = min(rate, to.slow)
	}
	took := int64(c.Size) * int64(time.Second) / rate
	n.up = max(n.up, w.now) + took
	n.sent += int64(c.Size)
	w.at(n.up, func() {
		if e.open {
			if e.writing = false; e.reads != nil {
				e.reads.readers--
				e.reads = nil
			}
			n.step(ChunkWritten{e.id})
		}
	})
	to.down = max(n.up+int64(w.takes()), to.down+took)
	e.arrives(to.down, func(o *end) { to.when(func() { o.read(c) }) })
}

// read puts a chunk in place.
func (e *end) read(c Chunk) {
	n, w := e.node, e.node.w
	if !e.open {
		return
	}
	x := e.expects[c.Token]
	if x == nil || x.next != c.Offset || x.memory.over {
		w.fail("node %v is sent a chunk that it does not expect: %+v, %+v", n.home, c, x)
	}
	m := x.memory
	if !e.local() && c.Sum != sumOf(m.object, c.Offset) || c.Offset != m.got {
		w.fail("node %v: wrong bytes at %d", n.home, c.Offset)
	}
	x.next += int64(c.Size)
	m.got += int64(c.Size)
	m.arrived += int64(c.Size)
	n.step(ChunkRead{e.id, c, e.local()})
}

func (n *node) finish(f Finish) {
	first := n.memory[f.Fetches[0]]
	for _, id := range f.Fetches {
		m := n.memory[id]
		if m.over {
			n.w.fail("node %v: fetch %d ends twice", n.home, id)
		}
		m.over, m.err, m.ended = true, f.Err, n.w.now
	}
	if first.readers > 0 {
		n.w.fail("node %v: memory is given back that %d chunks are read from", n.home, first.readers)
	}
	for _, e := range n.ends {
		for _, x := range e.expects {
			if x.memory == first {
				n.w.fail("node %v: memory is given back that chunks are read into", n.home)
			}
		}
	}
	if f.Err == nil {
		if first.got != first.size {
			n.w.fail("node %v: %d of %d bytes are there at the end", n.home, first.got, first.size)
		}
		n.has[first.object], n.since[first.object] = first.size, n.w.now
	}
}
