package transfer

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"mobula/internal/ids"
	"mobula/internal/testkit"
)

// However late messages are, and whichever connections break, nodes stop or reads fail while a broadcast begins: no nodes wait for one another in a circle, and all have the
// object soon after nothing goes wrong any more.
func TestNoNodesWaitForOneAnother(t *testing.T) {
	for _, seed := range testkit.Seeds(t, 2000) {
		b := newSpread(t, seed)
		for range b.rng.IntN(30) {
			b.disturb()
		}
		for _, n := range b.nodes {
			n.cut = false
		}
		b.run(b.nodes[0].core.cfg.Stall/2, b.check)
		for _, n := range b.nodes {
			if _, ok := n.has[thing]; !ok {
				b.fail("node %v does not have it: %+v", n.home, n.core.fetches[thing])
			}
		}
	}
}

// spread is a broadcast over a network in which messages take their time.
type spread struct {
	*world
	rng *rand.Rand
}

func newSpread(t *testing.T, seed uint64) *spread {
	b := &spread{rng: rand.New(rand.NewPCG(seed, 0))}
	fail := func(format string, args ...any) { t.Fatalf("seed %d: "+format, append([]any{seed}, args...)...) }
	b.world = newWorld(fail, 4+b.rng.IntN(5), func(c *Config) { c.Small = ChunkSize })
	b.rate, b.latency = 100*mib, b.upTo(5*time.Millisecond)
	b.jitter = func() time.Duration { return b.upTo(b.latency) }
	size := int64(2+b.rng.IntN(5)) * ChunkSize
	first := b.nodes[0]
	first.has[thing], first.restores = size, b.upTo(200*time.Millisecond)
	for _, n := range b.nodes[1:] {
		b.after(b.upTo(20*time.Millisecond), func() { b.ask(n, size) })
	}
	return b
}

func (b *spread) upTo(most time.Duration) time.Duration {
	return 1 + time.Duration(b.rng.Int64N(int64(most)))
}

// ask has a node fetch the object, as its store does: again if it comes to nothing.
func (b *spread) ask(n *node, size int64) {
	m := n.fetch(thing, size, 1)
	var look func()
	look = func() {
		switch {
		case !m.over:
			b.after(50*time.Millisecond, look)
		case m.err != nil:
			b.ask(n, size)
		}
	}
	look()
}

// disturb does one thing that may happen.
func (b *spread) disturb() {
	n := b.nodes[b.rng.IntN(len(b.nodes))]
	switch b.rng.IntN(7) {
	case 0, 1:
		if all := sorted(n.ends); len(all) > 0 {
			b.breakOff(all[b.rng.IntN(len(all))], errReset)
		}
	case 2:
		n.stop(b.upTo(5 * time.Second))
	case 3:
		n.cut = !n.cut
	case 4:
		b.nodes[0].unread = b.rng.IntN(2)
	default:
		b.run(b.upTo(100*time.Millisecond), b.check)
	}
}

// check fails if a node waits for itself.
func (b *spread) check() bool {
	for _, n := range b.nodes {
		if c := b.circle(n); c != nil {
			b.fail("nodes %v wait for one another, and have %d bytes", c, n.core.fetches[thing].got)
		}
	}
	return false
}

// circle gives the nodes that a node waits for, each for the next one, if it is one of them.
func (b *spread) circle(n *node) (way []ids.Home) {
	for x := n; !slices.Contains(way, x.home); {
		way = append(way, x.home)
		f := x.core.fetches[thing]
		if f == nil || f.pull == nil {
			return nil
		}
		h := b.node(f.pull.holder.node)
		if s := h.core.sends[sendKey{x.home, f.pull.token}]; s == nil || s.relay == nil || s.relay.over {
			return nil
		}
		if x = h; x == n {
			return way
		}
	}
	return nil
}
