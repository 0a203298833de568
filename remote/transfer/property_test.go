package transfer

import (
	"errors"
	"testing"
	"time"

	"pgregory.net/rapid"

	"mobula/internal/ids"
	"mobula/internal/testkit"
	"mobula/objectstore/spill"
)

// Whatever becomes of connections and nodes: every fetch ends, with the right bytes or a reason; no memory is used that was given back; nothing is said to be
// missing that a node has; and when nothing goes wrong any more, what some node has arrives.
func TestFetchesEnd(t *testing.T) {
	testkit.Check(t, func(rt *rapid.T) {
		p := newPlan(rt)
		for range rapid.IntRange(1, 60).Draw(rt, "steps") {
			p.disturb()
			p.check()
		}
		p.settle()
	})
}

// plan is a world in which things go wrong.
type plan struct {
	*world
	rt      *rapid.T
	objects []Object
	sizes   map[Object]int64
	lost    map[ids.Home]map[Object]bool // what a node had and has not any more
	asked   []asked
}

type asked struct {
	node *node
	m    *memory
}

func newPlan(rt *rapid.T) *plan {
	p := &plan{rt: rt, sizes: map[Object]int64{}, lost: map[ids.Home]map[Object]bool{}}
	p.world = newWorld(rt.Fatalf, 5, func(c *Config) {
		c.Window, c.PeerBytes, c.AllBytes, c.Small, c.Stall = 2*mib, 5*mib, 8*mib, 2*mib, 10*time.Second
	})
	p.rate = 100 * mib
	for i := range 3 {
		o := object(i)
		p.objects = append(p.objects, o)
		p.sizes[o] = int64(rapid.IntRange(0, 12*mib).Draw(rt, "size"))
		for range rapid.IntRange(1, 2).Draw(rt, "copies") {
			p.draw("holder").has[o] = p.sizes[o]
		}
	}
	for _, n := range p.nodes {
		p.lost[n.home] = map[Object]bool{}
	}
	return p
}

func (p *plan) draw(what string) *node { return rapid.SampledFrom(p.nodes).Draw(p.rt, what) }

func (p *plan) conn() *end {
	var all []*end
	for _, n := range p.nodes {
		all = append(all, sorted(n.ends)...)
	}
	if len(all) == 0 {
		return nil
	}
	return rapid.SampledFrom(all).Draw(p.rt, "connection")
}

func (p *plan) fetch(n *node, o Object) {
	if n.dead || n.stopped {
		return
	}
	if _, ok := n.has[o]; ok {
		return
	}
	from := rapid.SliceOfNDistinct(rapid.IntRange(1, len(p.nodes)), 1, 3, rapid.ID).Draw(p.rt, "from")
	var on []ids.Home
	for _, h := range from {
		on = append(on, ids.Home(h))
	}
	p.asked = append(p.asked, asked{n, n.fetch(o, p.sizes[o], on...)})
}

// disturb does one thing that may happen.
func (p *plan) disturb() {
	o := rapid.SampledFrom(p.objects).Draw(p.rt, "object")
	n := p.draw("node")
	switch rapid.IntRange(0, 15).Draw(p.rt, "what") {
	case 0, 1, 2, 3:
		p.fetch(n, o)
	case 4, 5, 6:
		if e := p.conn(); e != nil {
			p.breakOff(e, errReset)
		}
	case 7:
		n.stop(time.Duration(rapid.IntRange(1, 5000).Draw(p.rt, "ms")) * time.Millisecond)
	case 8:
		n.cut = !n.cut
	case 9:
		if rapid.IntRange(0, 3).Draw(p.rt, "kill") == 0 && !n.stopped {
			n.kill(rapid.Bool().Draw(p.rt, "word"))
		}
	case 10:
		p.evict(n, o)
	case 11:
		n.step(Sources{Object: o, On: []ids.Home{p.draw("source").home}})
	default:
		p.run(time.Duration(rapid.IntRange(1, 300).Draw(p.rt, "ms"))*time.Millisecond, nil)
	}
}

// evict has a node lose an object that nobody reads.
func (p *plan) evict(n *node, o Object) {
	if _, ok := n.has[o]; !ok {
		return
	}
	for _, pinned := range n.pins {
		if pinned == o {
			return
		}
	}
	delete(n.has, o)
	p.lost[n.home][o] = true
}

// settle lets everything end: nothing goes wrong any more.
func (p *plan) settle() {
	for _, n := range p.nodes {
		n.cut = false
		if n.dead {
			for _, x := range p.nodes {
				x.step(Gone{n.home})
			}
		}
	}
	p.ends()
	for _, a := range p.asked {
		_, has := a.node.has[a.m.object]
		if a.node.dead || has {
			continue
		}
		var on []ids.Home
		for _, n := range p.nodes {
			if _, ok := n.has[a.m.object]; ok && !n.dead {
				on = append(on, n.home)
			}
		}
		if len(on) == 0 {
			continue
		}
		m := a.node.fetch(a.m.object, a.m.size, on...)
		p.ends()
		if !m.over || m.err != nil {
			p.rt.Fatalf("node %v does not get %v of %v: %v", a.node.home, a.m.object, on, m.err)
		}
	}
	for _, n := range p.nodes {
		if !n.dead && len(n.pins)+len(n.core.sends)+len(n.core.of)+len(n.core.pulls)+len(n.core.order)+len(n.core.fetches) != 0 {
			p.rt.Fatalf("node %v: left are pins %v, sends %v, pulls %v, fetches %v", n.home, n.pins, n.core.sends, n.core.pulls, n.core.order)
		}
	}
}

func (p *plan) ends() {
	p.run(10*time.Minute, nil)
	p.check()
	for _, a := range p.asked {
		if !a.m.over && !a.node.dead {
			p.rt.Fatalf("node %v: a fetch of %v does not end: %+v", a.node.home, a.m.object, a.m)
		}
	}
}

// check recounts what the cores count, and what fetches that have ended say.
func (p *plan) check() {
	for _, n := range p.nodes {
		if n.dead {
			continue
		}
		c, all := n.core, int64(0)
		from := map[ids.Home]int64{}
		for _, q := range c.pulls {
			all += q.share
			from[q.holder.node] += q.share
			if q.fetch.pull != q {
				p.rt.Fatalf("node %v: pull %d is not its fetch's", n.home, q.token)
			}
		}
		if all != c.underWay || all > c.cfg.AllBytes {
			p.rt.Fatalf("node %v counts %d bytes under way, there are %d", n.home, c.underWay, all)
		}
		for h, pr := range c.peers {
			if pr.bytes != from[h] || pr.bytes > c.cfg.PeerBytes {
				p.rt.Fatalf("node %v counts %d bytes under way from %v, there are %d", n.home, pr.bytes, h, from[h])
			}
			if len(pr.links)+pr.dialing > c.cfg.Conns {
				p.rt.Fatalf("node %v has %d connections to %v and dials %d", n.home, len(pr.links), h, pr.dialing)
			}
		}
	}
	for _, a := range p.asked {
		if !errors.Is(a.m.err, spill.ErrMissing) {
			continue
		}
		for _, h := range a.m.from {
			_, has := p.node(h).has[a.m.object]
			if has && !p.lost[h][a.m.object] && p.node(h).since[a.m.object] <= a.m.begun {
				p.rt.Fatalf("node %v: %v is said to be missing, node %v has it: %v", a.node.home, a.m.object, h, a.m.err)
			}
		}
	}
}
