package membership

import (
	"cmp"
	"math"
	"slices"
	"time"

	"mobula/internal/ids"
	"mobula/remote"
)

// Core is what a node believes of the others.
type Core struct {
	cfg     Config
	members map[ids.Home]*member // the latest life of each other home
	fenced  map[ids.Home]uint64  // lives up to this epoch are over
	living  int                  // members that are alive or suspected
	clashes map[ids.Home]told
	doubts  doubts
	own     ownLoad
	armed   int64 // when the timer comes; 0: it does not
	now     int64
	out     []Effect
}

// NewCore makes a core that knows of no other node.
func NewCore(cfg Config) *Core {
	return &Core{
		cfg: cfg, members: make(map[ids.Home]*member), fenced: make(map[ids.Home]uint64), clashes: make(map[ids.Home]told),
		doubts: doubts{lives: make(map[ids.Home]*member), at: math.MaxInt64},
	}
}

// Step handles one event. The slice is valid until the next Step.
func (c *Core) Step(now int64, ev Event) []Effect {
	c.now, c.out = now, c.out[:0]
	switch ev := ev.(type) {
	case Seen:
		c.seen(ev.Node)
	case Failed:
		c.weigh(ev.Life, (*member).failed)
	case Leaving:
		c.weigh(ev.Life, func(m *member) { m.left = true })
	case Connected:
		c.weigh(ev.Life, func(m *member) { m.link, m.refused = speaksFor, false })
	case Broken:
		c.weigh(ev.Life, (*member).broken)
	case NobodyListens:
		c.weigh(ev.Life, (*member).nobodyListens)
	case Beat:
		c.beat(ev)
	case Fenced:
		c.fence(ev.Life)
	case Clash:
		if ev.Life.Epoch > c.fenced[ev.Life.Home] {
			c.clash(ev.Life.Home, ev.Addresses)
		}
	case Gossiped:
		c.gossiped(ev.Load)
	case Report:
		c.report(ev)
	case List:
		c.emit(Listed{ID: ev.ID, Members: c.all()})
	case Timer:
		c.armed = 0
	}
	c.plead()
	c.spread()
	c.arm()
	return c.out
}

// fence takes a verdict of the control plane.
func (c *Core) fence(l remote.Life) {
	if l.Epoch <= c.fenced[l.Home] {
		return
	}
	c.fenced[l.Home] = l.Epoch
	if l.Home == c.cfg.Self.Home {
		if l.Epoch >= c.cfg.Self.Epoch {
			c.emit(Superseded{Epoch: l.Epoch})
		}
		return
	}
	if m := c.members[l.Home]; m != nil && m.node.Epoch <= l.Epoch {
		c.become(m, Over, NoReason)
	}
	c.emit(NodeFenced{Life: l})
}

// told is the last HomeClash of a home.
type told struct {
	addresses [2]string
	at        int64
}

// clash tells that two nodes are there with one home, again only after a while or if they have moved: the gossip notices it with each message.
func (c *Core) clash(home ids.Home, addresses [2]string) {
	was, before := c.clashes[home]
	if before && was.addresses == addresses && c.now-was.at < int64(c.cfg.ClashEvery) {
		return
	}
	c.clashes[home] = told{addresses, c.now}
	c.emit(HomeClash{Home: home, Addresses: addresses})
}

// size is how many nodes there are, this one among them.
func (c *Core) size() int { return c.living + 1 }

func (c *Core) all() []Member {
	out := []Member{{Node: c.cfg.Self, State: Alive}}
	for _, m := range c.members {
		out = append(out, Member{Node: m.node, State: m.state, Why: m.why, Since: m.since})
	}
	slices.SortFunc(out, func(a, b Member) int { return cmp.Compare(a.Node.Home, b.Node.Home) })
	return out
}

// arm asks for a timer at the next time at which something is due.
func (c *Core) arm() {
	at := min(c.doubts.at, c.own.deadline())
	if at == math.MaxInt64 || c.armed != 0 && c.armed <= at {
		return
	}
	c.armed = at
	c.emit(After{Delay: time.Duration(max(0, at-c.now))})
}

func (c *Core) emit(e Effect) { c.out = append(c.out, e) }
