package transfer

import (
	"fmt"
	"math"
	"time"

	"mobula/internal/ids"
)

// Core is one node's part in the transfers between nodes.
type Core struct {
	cfg   Config
	now   int64
	armed int64 // when the timer that was asked for comes; 0: none
	fx    []Effect

	// As a receiver.
	fetches  map[Object]*fetch
	order    []*fetch // as they were asked for
	pulls    map[uint64]*pull
	token    uint64 // of the next pull
	underWay int64  // bytes, over all pulls
	recheck  bool   // a fetch that waits may be able to begin

	// As a holder.
	sends map[sendKey]*send
	of    map[Object]*audience // the same, by what is sent

	peers map[ids.Home]*peer
	links map[ConnID]*link
}

// NewCore makes the core of a node that nothing was asked of yet.
func NewCore(cfg Config) *Core {
	return &Core{
		cfg: cfg, token: cfg.First,
		fetches: make(map[Object]*fetch), pulls: make(map[uint64]*pull),
		sends: make(map[sendKey]*send), of: make(map[Object]*audience),
		peers: make(map[ids.Home]*peer), links: make(map[ConnID]*link),
	}
}

// Step handles one event. The slice is valid until the next Step.
func (c *Core) Step(now int64, ev Event) []Effect {
	c.now = max(now, c.now)
	clear(c.fx)
	c.fx = c.fx[:0]
	switch ev := ev.(type) {
	case Fetch:
		c.fetch(ev)
	case Sources:
		c.sources(ev)
	case Served:
		c.served(ev)
	case Connected:
		c.connected(ev)
	case DialFailed:
		c.dialFailed(ev)
	case Closed:
		c.closed(ev)
	case Got:
		c.got(ev)
	case ChunkRead:
		c.chunkRead(ev)
	case NoMemory:
		c.noMemory(ev)
	case Heard:
		c.hear(ev.Conn)
	case ChunkWritten:
		c.chunkWritten(ev.Conn)
	case Gone:
		c.gone(ev.Node)
	case Timer:
		c.armed = 0
		c.tick()
	default:
		panic(fmt.Sprintf("transfer: %T is not an event of a transfer", ev)) // a fault of the program: supervision reports it
	}
	c.begin()
	c.arm()
	return c.fx
}

func (c *Core) emit(e Effect) { c.fx = append(c.fx, e) }

// hear gives an open connection on which something has come.
func (c *Core) hear(id ConnID) *link {
	l := c.links[id]
	if l == nil || l.closing {
		return nil
	}
	l.heard = c.now
	return l
}

// got handles a frame. Only the node that has dialed pulls.
func (c *Core) got(ev Got) {
	l := c.hear(ev.Conn)
	if l == nil {
		return
	}
	switch f := ev.Frame.(type) {
	case Pull:
		if !l.dialed {
			c.pulled(l, f)
			return
		}
	case Credit:
		if !l.dialed {
			c.credited(l, f)
			return
		}
	case Alive:
		if l.dialed {
			return
		}
	case Refused:
		if l.dialed {
			c.refused(l, f)
			return
		}
	}
	c.close(l, ErrProtocol)
}

// tick does what has come due.
func (c *Core) tick() {
	for _, l := range sorted(c.links) {
		c.expire(l)
	}
	for _, f := range c.order {
		c.linger(f)
	}
	c.recheck = true
}

// arm asks for a timer at the next time at which something is due.
func (c *Core) arm() {
	at := int64(math.MaxInt64)
	for _, l := range c.links {
		at = min(at, c.due(l))
	}
	for _, f := range c.order {
		at = min(at, f.at)
	}
	if at == math.MaxInt64 || c.armed != 0 && c.armed <= at {
		return
	}
	c.armed = at
	c.emit(After{Delay: time.Duration(max(0, at-c.now))})
}
