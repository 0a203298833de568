package remote

import (
	"fmt"
	"math"
	"reflect"
	"time"

	"mobula/internal/errs"
	"mobula/internal/queue"
)

// Peer is the core of what this node has with one other node.
type Peer struct {
	cfg    Config
	now    int64
	peer   Life   // the other node's life; Epoch 0: not known yet
	fenced uint64 // its lives up to this one are dead
	over   bool   // this life is
	out    outgoing
	in     incoming
	links  links
	dial   dialing
	armed  int64 // when the timer that was asked for comes; 0: none

	// Of the last step. What each message needs is pointed to, and costs no allocation.
	fx        []Effect
	write     Write
	writeAck  WriteAck
	delivered Deliver
}

// outgoing is what the other node has not acknowledged.
type outgoing struct {
	waiting  queue.Queue[[]byte]
	first    uint64 // number of the first that waits
	bytes    int64
	full     bool  // senders were asked to wait
	progress int64 // when the other node acknowledged last, or something began to wait
}

func (o *outgoing) next() uint64 { return o.first + uint64(o.waiting.Len()) }

// incoming is what was taken from the other node's life.
type incoming struct {
	last  uint64 // number of the last message
	acked uint64 // of the last that was acknowledged on the connection in use
	bytes int64  // taken since
	due   int64  // when an Ack is; 0: none is due
}

// NewPeer makes the core. The other node is dialed when there is something to say.
func NewPeer(cfg Config) *Peer {
	return &Peer{cfg: cfg, peer: Life{Home: cfg.Peer}, out: outgoing{first: 1}, links: newLinks()}
}

// Step handles one event. The slice is valid until the next Step, and so is what is pointed to: Write, WriteAck and Deliver.
func (p *Peer) Step(now int64, ev Event) []Effect {
	p.now = max(now, p.now)
	clear(p.fx)
	p.fx = p.fx[:0]
	switch ev := ev.(type) {
	case Send:
		p.send(ev)
	case Connected:
		p.connected(ev)
	case DialFailed:
		p.dialFailed()
	case Closed:
		p.closed(ev)
	case HelloReceived:
		p.hello(ev.Conn, ev.Hello)
	case UseReceived:
		p.used(ev.Conn)
	case Received:
		p.received(ev)
	case AckReceived:
		p.ackReceived(ev)
	case Busy:
		p.busy(ev.Conn)
	case Timer:
		p.armed = 0
		p.tick()
	case Fence:
		p.fence(ev.Epoch)
	default:
		panic("remote: not an event of a peer: " + reflect.TypeOf(ev).String()) // a fault of the program: supervision reports it. With fmt each event would be on the heap
	}
	p.seek()
	p.arm()
	return p.fx
}

func (p *Peer) emit(e Effect) { p.fx = append(p.fx, e) }

// send takes a message for the other node, and writes it where there is a connection.
func (p *Peer) send(ev Send) {
	payload := ev.Payload
	if p.over {
		p.refuse(payload)
		return
	}
	if ev.To != 0 && (ev.To <= p.fenced || ev.To < p.peer.Epoch) {
		return
	}
	n := int64(len(payload))
	if p.out.bytes+n > p.cfg.Limit && p.out.waiting.Len() > 0 {
		p.emit(Refused{Payload: payload, Err: errs.New(errs.CodeBacklog, "node %v: %d bytes wait for it, at most %d may", p.cfg.Peer, p.out.bytes, p.cfg.Limit)})
		return
	}
	if p.out.waiting.Len() == 0 {
		p.out.progress = p.now
	}
	number := p.out.next()
	p.out.waiting.Push(payload)
	if p.out.bytes += n; p.out.bytes > p.cfg.High && !p.out.full {
		p.out.full = true
		p.emit(Full{})
	}
	if c := p.links.use; c != nil {
		p.ack() // it goes with the message, and need not go alone
		p.write = Write{Conn: c.id, Number: number, Payload: payload}
		p.emit(&p.write)
	}
}

// received delivers a message that was not there before.
func (p *Peer) received(m Received) {
	c := p.links.byID[m.Conn]
	switch {
	case c == nil || c != p.links.use:
		return // it is written again on the one in use
	}
	p.works(c)
	switch {
	case m.Number <= p.in.last:
		return // taken from a connection before
	case m.Number > p.in.last+1:
		p.close(c, fmt.Errorf("%w: %d follows %d", ErrGap, m.Number, p.in.last))
		return
	}
	p.in.last = m.Number
	p.delivered = Deliver{From: p.peer, Payload: m.Payload}
	p.emit(&p.delivered)
	if p.in.bytes += int64(len(m.Payload)); p.in.bytes >= p.cfg.AckBytes {
		p.ack()
	} else if p.in.due == 0 {
		p.in.due = p.now + int64(p.cfg.AckDelay)
	}
}

// ack acknowledges what was taken.
func (p *Peer) ack() {
	if c := p.links.use; c != nil && p.in.acked < p.in.last {
		p.acknowledge(c)
	}
	p.in.bytes, p.in.due = 0, 0
}

func (p *Peer) acknowledge(c *link) {
	p.writeAck = WriteAck{Conn: c.id, Number: p.in.last}
	p.emit(&p.writeAck)
	p.in.acked = p.in.last
}

// busy acknowledges once more what was acknowledged before: that is the sign that this node lives.
func (p *Peer) busy(id ConnID) {
	if c := p.links.use; c != nil && c.id == id {
		p.acknowledge(c)
		p.in.bytes, p.in.due = 0, 0
		p.out.progress = p.now
	}
}

func (p *Peer) ackReceived(m AckReceived) {
	c := p.links.byID[m.Conn]
	if c == nil || c != p.links.use {
		return
	}
	p.works(c)
	p.out.progress = p.now
	if !p.acknowledged(m.Number) {
		p.close(c, fmt.Errorf("%w: number %d is acknowledged, the last one sent is %d", ErrGap, m.Number, p.out.next()-1))
	}
}

// acknowledged lets go of the messages up to a number. It is false if that was never sent.
func (p *Peer) acknowledged(number uint64) bool {
	if number >= p.out.next() {
		return false
	}
	for p.out.first <= number {
		p.out.bytes -= int64(len(p.out.waiting.Pop()))
		p.out.first++
		p.out.progress = p.now
	}
	if p.out.full && p.out.bytes <= p.cfg.Low {
		p.out.full = false
		p.emit(Room{})
	}
	return true
}

// tick does what has come due.
func (p *Peer) tick() {
	if p.in.due != 0 && p.in.due <= p.now {
		p.ack()
	}
	if c := p.links.use; c != nil && p.out.waiting.Len() > 0 && p.silent() <= p.now {
		p.close(c, fmt.Errorf("%w: for %v", ErrSilent, time.Duration(p.now-p.out.progress)))
	}
	p.links.expire(p)
}

// silent is when the connection in use is given up.
func (p *Peer) silent() int64 {
	return max(p.out.progress, p.links.since) + int64(p.cfg.Silence)
}

// arm asks for a timer at the next time at which something is due.
func (p *Peer) arm() {
	at := int64(math.MaxInt64)
	if p.in.due != 0 {
		at = p.in.due
	}
	if p.links.use != nil && p.out.waiting.Len() > 0 {
		at = min(at, p.silent())
	}
	at = min(at, p.links.deadline(), p.dial.deadline(p))
	if at == math.MaxInt64 || p.armed != 0 && p.armed <= at {
		return
	}
	p.armed = at
	p.emit(After{Delay: time.Duration(max(0, at-p.now))})
}
