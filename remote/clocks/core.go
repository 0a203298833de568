package clocks

import (
	"slices"
	"time"

	"mobula/internal/ids"
)

// The plan of a Core. Clocks that nobody moves run apart by less than drift.
const (
	eager  = 4               // round trips, each at the next Tick
	rarely = 8 * time.Second // between two after those
	window = 8               // round trips that count
	drift  = 500e-6          // as NTP has it
)

// Event is what a Core steps on.
type Event interface{ clocksEvent() }

// Met says that this node has begun to talk with another.
type Met struct{ Node ids.Home }

// Needed says that times of another node are about to come.
type Needed struct{ Node ids.Home }

// Asked says that another node has asked: at Sent, by its clock.
type Asked struct {
	Node ids.Home
	Sent int64
}

// Told is the answer of another node: this node's clock said Sent when it asked, and the step's time is that of the answer's arrival. Received and Replied
// are by the other's clock.
type Told struct {
	Node                    ids.Home
	Sent, Received, Replied int64
}

// Gone says that another node's life is over: the next one may be on another machine.
type Gone struct{ Node ids.Home }

// Tick comes about every second. Needed are the nodes whose times may come at any moment.
type Tick struct{ Needed []ids.Home }

func (Met) clocksEvent()    {}
func (Needed) clocksEvent() {}
func (Asked) clocksEvent()  {}
func (Told) clocksEvent()   {}
func (Gone) clocksEvent()   {}
func (Tick) clocksEvent()   {}

// Ask is what the core asks for: the node is to be asked for its time.
type Ask struct{ Node ids.Home }

// Core is the logic.
type Core struct{ peers map[ids.Home]*peer }

// New makes a Core that knows no node.
func New() *Core { return &Core{peers: make(map[ids.Home]*peer)} }

// peer is what is known of one clock.
type peer struct {
	samples []sample // the last ones, in order
	ahead   int64    // the estimate
	known   bool
	asked   int   // times
	due     int64 // when it is asked next
}

// sample is one round trip.
type sample struct {
	ahead, delay int64
	at           int64
}

// Step handles one event. now is by this node's clock.
func (c *Core) Step(now int64, ev Event) []Ask {
	switch ev := ev.(type) {
	case Met:
		if c.peers[ev.Node] == nil {
			p := new(peer)
			c.peers[ev.Node] = p
			return p.ask(now, ev.Node)
		}
	case Needed:
		return c.ask(now, ev.Node)
	case Asked:
		if p := c.peers[ev.Node]; p != nil && len(p.samples) == 0 {
			p.ahead, p.known = ev.Sent-now, true
		}
	case Told:
		if p := c.peers[ev.Node]; p != nil {
			p.told(now, ev)
		}
	case Gone:
		delete(c.peers, ev.Node)
	case Tick:
		var asks []Ask
		for _, node := range ev.Needed {
			asks = append(asks, c.ask(now, node)...)
		}
		return asks
	}
	return nil
}

// Ahead is how far a node's clock is ahead of this one's, as far as that is known.
func (c *Core) Ahead(node ids.Home) (by int64, known bool) {
	if p := c.peers[node]; p != nil {
		return p.ahead, p.known
	}
	return 0, false
}

// ask asks a node whose time is needed, if what is known of it is old.
func (c *Core) ask(now int64, node ids.Home) []Ask {
	if p := c.peers[node]; p != nil && p.due <= now {
		return p.ask(now, node)
	}
	return nil
}

func (p *peer) ask(now int64, node ids.Home) []Ask {
	if p.asked++; p.asked > eager {
		p.due = now + int64(rarely)
	}
	return []Ask{{Node: node}}
}

// told takes a round trip, and estimates anew.
func (p *peer) told(now int64, t Told) {
	s := sample{ahead: (t.Received - t.Sent + t.Replied - now) / 2, delay: now - t.Sent - (t.Replied - t.Received), at: now}
	if s.delay < 0 || t.Replied < t.Received {
		return // a clock has moved meanwhile
	}
	if best := p.best(now); best != nil && s.contradicts(best) {
		p.samples = p.samples[:0]
	}
	if len(p.samples) == window {
		p.samples = slices.Delete(p.samples, 0, 1)
	}
	p.samples = append(p.samples, s)
	p.ahead, p.known = p.best(now).ahead, true
}

// best is the round trip that is wrong by the least now, and of equals the last.
func (p *peer) best(now int64) (b *sample) {
	for i := range p.samples {
		if s := &p.samples[i]; b == nil || s.wrong(now) <= b.wrong(now) {
			b = s
		}
	}
	return b
}

// wrong bounds by how much a round trip is wrong: by half of it, and by what the clocks have run apart since.
func (s *sample) wrong(now int64) int64 { return s.delay/2 + int64(drift*float64(now-s.at)) }

// contradicts tells whether no difference of the clocks explains both round trips.
func (s *sample) contradicts(t *sample) bool {
	apart := max(s.ahead-t.ahead, t.ahead-s.ahead)
	return apart > (s.delay+t.delay)/2+int64(drift*float64(s.at-t.at))+1
}
