package remote

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"mobula/internal/ids"
	"mobula/internal/testkit"
)

// Whatever becomes of connections, and whenever a node begins another life or is fenced: between two lives each message arrives once and
// in order, none is dropped without a word, and when nothing goes wrong any more all that waits arrives.
func TestMessagesArriveOnceAndInOrder(t *testing.T) {
	testkit.Check(t, func(rt *rapid.T) {
		w := newWorld(rt)
		for range rapid.IntRange(1, 300).Draw(rt, "steps") {
			w.disturb()
			w.check()
		}
		w.settle()
	})
}

// world is two nodes and what is between them.
type world struct {
	rt    *rapid.T
	now   int64
	nodes [2]*testNode
	conns map[ConnID]*testConn
	next  ConnID
}

// testNode is one life of a node.
type testNode struct {
	w      *world
	side   int
	life   Life
	core   *Peer
	dials  int   // Dials to be answered
	timer  int64 // 0: none
	full   bool
	over   bool
	sent   []uint64 // messages for the other node that were not dropped since, by number
	number uint64
	from   map[uint64]uint64 // by the other's epoch: the message that was delivered last
}

// testConn is a connection: what was written and has not arrived, for either side.
type testConn struct {
	id     ConnID
	nodes  [2]*testNode
	flight [2][]Event // to nodes[i]
	open   [2]bool    // nodes[i] has not heard of the end
	cut    bool
}

func newWorld(rt *rapid.T) *world {
	w := &world{rt: rt, conns: make(map[ConnID]*testConn)}
	for side := range w.nodes {
		w.begin(side, 1)
	}
	return w
}

func (w *world) begin(side int, epoch uint64) {
	life := Life{Home: ids.Home(side + 1), Epoch: epoch}
	cfg := DefaultConfig(life, ids.Home(2-side))
	cfg.High, cfg.Low, cfg.Limit, cfg.AckBytes = 80, 40, 200, 24
	cfg.Random = func(n int64) int64 { return n / 2 }
	w.nodes[side] = &testNode{w: w, side: side, life: life, core: NewPeer(cfg), from: make(map[uint64]uint64)}
}

// pick draws one of several things.
func pick[T any](w *world, what string, from []T) (T, bool) {
	if len(from) == 0 {
		var none T
		return none, false
	}
	return from[rapid.IntRange(0, len(from)-1).Draw(w.rt, what)], true
}

func (w *world) open() (out []*testConn) {
	for id := ConnID(1); id <= w.next; id++ {
		if c := w.conns[id]; c != nil {
			out = append(out, c)
		}
	}
	return out
}

// disturb does one thing that may happen.
func (w *world) disturb() {
	n := w.nodes[rapid.IntRange(0, 1).Draw(w.rt, "node")]
	switch rapid.IntRange(0, 19).Draw(w.rt, "what") {
	case 0, 1, 2, 3:
		n.send()
	case 4:
		w.pass(time.Duration(rapid.Int64Range(1, int64(3*time.Second)).Draw(w.rt, "time")))
	case 5, 6:
		w.pass(3 * time.Millisecond)
	case 7, 8:
		w.answer(n, true)
	case 9:
		w.answer(n, false)
	case 10:
		if c, ok := pick(w, "cut", w.open()); ok {
			w.cut(c)
		}
	case 11:
		if rapid.IntRange(0, 4).Draw(w.rt, "restart") == 0 {
			w.restart(n)
		}
	case 12:
		if rapid.IntRange(0, 4).Draw(w.rt, "fence") == 0 {
			w.fence(n)
		}
	case 13:
		if rapid.IntRange(0, 2).Draw(w.rt, "rebuild") == 0 {
			n.rebuild()
		}
	case 14:
		if c, ok := pick(w, "connection", w.open()); ok {
			n.step(Busy{Conn: c.id})
		}
	default:
		if c, ok := pick(w, "connection", w.open()); ok {
			w.arrive(c, rapid.IntRange(0, 1).Draw(w.rt, "way"))
		}
	}
}

func (n *testNode) send() {
	if n.over {
		return
	}
	n.number++
	n.sent = append(n.sent, n.number)
	n.step(Send{Payload: n.payload()})
}

// payload is the last message: whose it is, and its number.
func (n *testNode) payload() []byte {
	b := binary.BigEndian.AppendUint64(make([]byte, 0, 16), n.life.Epoch)
	return binary.BigEndian.AppendUint64(b, n.number)
}

// pass lets time pass, and timers come.
func (w *world) pass(d time.Duration) {
	w.now += int64(d)
	for _, n := range w.nodes {
		if n.timer != 0 && n.timer <= w.now {
			n.timer = 0
			n.step(Timer{})
		}
	}
}

// answer answers a node's dial.
func (w *world) answer(n *testNode, well bool) {
	if n.dials == 0 {
		return
	}
	n.dials--
	if !well {
		n.step(DialFailed{Err: errors.New("unreachable")})
		return
	}
	w.next++
	c := &testConn{id: w.next, nodes: w.nodes, open: [2]bool{true, true}}
	w.conns[c.id] = c
	n.step(Connected{Conn: c.id, Dialed: true})
	w.nodes[1-n.side].step(Connected{Conn: c.id})
}

// cut breaks a connection: of what is under way a part still arrives.
func (w *world) cut(c *testConn) {
	if c.cut {
		return
	}
	c.cut = true
	for i := range c.flight {
		c.flight[i] = c.flight[i][:rapid.IntRange(0, len(c.flight[i])).Draw(w.rt, "left")]
	}
}

// arrive hands over the next thing that was written for a side, or the end.
func (w *world) arrive(c *testConn, i int) {
	n := c.nodes[i]
	if !c.open[i] {
		return
	}
	if len(c.flight[i]) > 0 {
		ev := c.flight[i][0]
		c.flight[i] = c.flight[i][1:]
		n.step(ev)
		return
	}
	if !c.cut {
		return
	}
	c.open[i] = false
	if !c.open[1-i] {
		delete(w.conns, c.id)
	}
	n.step(Closed{Conn: c.id, Err: errors.New("the connection broke")})
}

// restart kills a node and begins its next life.
func (w *world) restart(n *testNode) {
	w.begin(n.side, n.life.Epoch+1)
	for _, c := range w.open() {
		if c.nodes[n.side] == n {
			w.cut(c)
			c.open[n.side], c.flight[n.side] = false, nil
		}
	}
}

// rebuild replaces the core of a node that goes on.
func (n *testNode) rebuild() {
	for _, c := range n.w.open() {
		n.close(c)
	}
	n.dials, n.timer = 0, 0
	n.core = Rebuild(n.core.cfg, n.core.Kept(), slices.Clone(n.core.out.waiting.All()))
	n.step(Timer{})
}

// fence declares a node's life dead, and has it begin another: it may have been alive.
func (w *world) fence(n *testNode) {
	w.nodes[1-n.side].step(Fence{Epoch: n.life.Epoch})
	w.restart(n)
}

// step has the core step, and does what it asks for.
func (n *testNode) step(ev Event) {
	w := n.w
	if n != w.nodes[n.side] {
		return // of a life that is over
	}
	for _, f := range n.core.Step(w.now, ev) {
		switch f := f.(type) {
		case Dial:
			if n.dials++; n.dials > 1 {
				w.rt.Fatalf("%v dials twice at once", n.life)
			}
		case Close:
			if c := w.conns[f.Conn]; c != nil {
				n.close(c)
			}
		case WriteHello:
			n.write(f.Conn, HelloReceived(f))
		case WriteUse:
			n.write(f.Conn, UseReceived(f))
		case *Write:
			n.write(f.Conn, Received(*f))
		case *WriteAck:
			n.write(f.Conn, AckReceived(*f))
		case *Deliver:
			n.deliver(*f)
		case Full:
			n.full = true
		case Room:
			n.full = false
		case Refused:
			if string(f.Payload) != string(n.payload()) {
				w.rt.Fatalf("%v is given back a message that is not the last one", n.life)
			}
			n.sent = n.sent[:len(n.sent)-1]
			n.number--
		case Restarted:
			n.dropped(f.Dropped)
		case Gone:
			n.dropped(f.Dropped)
		case Superseded:
			n.over = true
		case After:
			n.timer = w.now + int64(f.Delay)
		}
	}
}

func (n *testNode) close(c *testConn) {
	n.w.cut(c)
	c.open[n.side], c.flight[n.side] = false, nil
	if !c.open[1-n.side] {
		delete(n.w.conns, c.id)
	}
}

func (n *testNode) dropped(count int) {
	if len(n.sent) < count {
		n.w.rt.Fatalf("%v: %d messages are said to be dropped, %d were not acknowledged", n.life, count, len(n.sent))
	}
	n.sent = nil
}

func (n *testNode) write(id ConnID, ev Event) {
	if c := n.w.conns[id]; c != nil && !c.cut {
		c.flight[1-n.side] = append(c.flight[1-n.side], ev)
	}
}

// deliver checks what has arrived.
func (n *testNode) deliver(d Deliver) {
	epoch, number := binary.BigEndian.Uint64(d.Payload), binary.BigEndian.Uint64(d.Payload[8:])
	if d.From != (Life{ids.Home(2 - n.side), epoch}) {
		n.w.rt.Fatalf("%v is handed a message of epoch %d as one of %v", n.life, epoch, d.From)
	}
	last, begun := n.from[epoch]
	if begun && number != last+1 {
		n.w.rt.Fatalf("%v is handed message %d of epoch %d after %d", n.life, number, epoch, last)
	}
	n.from[epoch] = number
	o := n.w.nodes[1-n.side]
	if o.life.Epoch != epoch {
		return // it is over, and had sent it before
	}
	if !begun && o.sent[0] != number { // what was sent to the life before was dropped with a word
		n.w.rt.Fatalf("%v is handed message %d of %v first, %d was never dropped", n.life, number, o.life, o.sent[0])
	}
}

// check recounts what the cores count.
func (w *world) check() {
	for _, n := range w.nodes {
		p, bytes, opening := n.core, int64(0), 0
		for _, c := range p.links.byID {
			if c.deadline != 0 {
				opening++
			}
		}
		for _, m := range p.out.waiting.All() {
			bytes += int64(len(m))
		}
		switch {
		case bytes != p.out.bytes:
			w.rt.Fatalf("%v counts %d bytes, there are %d", n.life, p.out.bytes, bytes)
		case opening != p.links.opening:
			w.rt.Fatalf("%v counts %d connections that are not in use yet, there are %d", n.life, p.links.opening, opening)
		case n.full != p.out.full:
			w.rt.Fatalf("%v: senders wait: %v, counted %v", n.life, n.full, p.out.full)
		case p.in.acked > p.in.last:
			w.rt.Fatalf("%v has acknowledged message %d, the last one is %d", n.life, p.in.acked, p.in.last)
		case p.links.use != nil && p.links.byID[p.links.use.id] != p.links.use:
			w.rt.Fatalf("%v uses a connection that is not there", n.life)
		case n.timer == 0 != (p.armed == 0):
			w.rt.Fatalf("%v: the timer is armed: %v, is to be: %v", n.life, n.timer != 0, p.armed != 0)
		}
	}
}

// settle lets everything arrive: nothing goes wrong any more.
func (w *world) settle() {
	for range 10_000 {
		moved := false
		for _, c := range w.open() {
			for i := range c.nodes {
				if len(c.flight[i]) > 0 || c.cut && c.open[i] {
					moved = true
					w.arrive(c, i)
				}
			}
		}
		for _, n := range w.nodes {
			if n.dials > 0 {
				moved = true
				w.answer(n, true)
			}
		}
		w.check()
		if moved {
			continue
		}
		at := int64(0)
		for _, n := range w.nodes {
			if n.timer != 0 && (at == 0 || n.timer < at) {
				at = n.timer
			}
		}
		if at == 0 {
			w.settled()
			return
		}
		w.pass(time.Duration(max(0, at-w.now)))
	}
	w.rt.Fatalf("messages go to and fro for ever: %v", w)
}

// settled checks that nothing waits.
func (w *world) settled() {
	for i, n := range w.nodes {
		o := w.nodes[1-i]
		if n.core.out.waiting.Len() != 0 {
			w.rt.Fatalf("%v: %d messages wait, and nothing is under way", n.life, n.core.out.waiting.Len())
		}
		if k := len(n.sent); k > 0 && o.from[n.life.Epoch] != n.sent[k-1] {
			w.rt.Fatalf("%v has sent message %d, %v was handed %d last", n.life, n.sent[k-1], o.life, o.from[n.life.Epoch])
		}
		if n.over {
			w.rt.Fatalf("%v was told that it is over", n.life)
		}
	}
}

func (w *world) String() string {
	return fmt.Sprintf("%d connections, %+v and %+v wait for %d and %d messages", len(w.conns), w.nodes[0].life, w.nodes[1].life, w.nodes[1].core.out.waiting.Len(), w.nodes[0].core.out.waiting.Len())
}
