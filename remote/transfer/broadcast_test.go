package transfer

import (
	"slices"
	"testing"
	"time"

	"mobula/internal/ids"
)

const mib = 1 << 20

var thing = Object{ID: ids.RootTask(1, 1).Put(1)}

// hop is what one transfer between two nodes takes at the least.
func (w *world) hop(size int64) time.Duration {
	return time.Duration(size * int64(time.Second) / w.rate)
}

// broadcast has all nodes but the first ask it for an object. They begin a time apart.
func broadcast(t *testing.T, w *world, size int64, apart time.Duration) []*memory {
	t.Helper()
	w.nodes[0].has[thing] = size
	var all []*memory
	for i, n := range w.nodes[1:] {
		w.after(time.Duration(i)*apart, func() { all = append(all, n.fetch(thing, size, 1)) })
	}
	w.run(time.Minute, func() bool {
		return len(all) == len(w.nodes)-1 && !slices.ContainsFunc(all, func(m *memory) bool { return !m.over })
	})
	for i, m := range all {
		if !m.over || m.err != nil || m.arrived != size {
			t.Errorf("node %d: over: %v, %v, %d bytes entered", i+2, m.over, m.err, m.arrived)
		}
	}
	return all
}

// Six nodes that want 256 MiB at the same time become a chain.
func TestABroadcastIsAChain(t *testing.T) {
	const size = 256 * mib
	w := newWorld(t.Fatalf, 7)
	broadcast(t, w, size, 0)
	if took := time.Duration(w.now); took > w.hop(size)*11/10 {
		t.Errorf("it took %v, one hop takes %v", took, w.hop(size))
	}
	for _, n := range w.nodes {
		if n.sent > size {
			t.Errorf("node %v sent %d bytes", n.home, n.sent)
		}
	}
}

// Nodes that ask later get what others have by then.
func TestABroadcastToNodesThatComeLater(t *testing.T) {
	const size = 256 * mib
	for _, apart := range []time.Duration{time.Microsecond, 10 * time.Millisecond, 100 * time.Millisecond, time.Second} {
		w := newWorld(t.Fatalf, 7)
		all := broadcast(t, w, size, apart)
		for i, m := range all {
			if took := time.Duration(m.ended) - time.Duration(i)*apart; took > w.hop(size)*3/2 {
				t.Errorf("%v apart: node %d took %v, one hop takes %v", apart, i+2, took, w.hop(size))
			}
		}
		if sent := w.nodes[0].sent; apart < 100*time.Millisecond && sent > 2*size {
			t.Errorf("%v apart: the first node sent %d bytes", apart, sent)
		}
	}
}

// Many nodes find their places without asking one another in turn.
func TestABroadcastToManyNodes(t *testing.T) {
	const size = 64 * mib
	w := newWorld(t.Fatalf, 101)
	broadcast(t, w, size, 0)
	if took := time.Duration(w.now); took > w.hop(size)*3 { // 64 chunks and 99 more hops of one
		t.Errorf("it took %v, one hop takes %v", took, w.hop(size))
	}
	if sent := w.nodes[0].sent; sent > 2*size {
		t.Errorf("the first node sent %d bytes", sent)
	}
	for _, n := range w.nodes[1:] {
		if k := len(n.ends); k > 8 {
			t.Errorf("node %v has %d connections", n.home, k)
		}
	}
}

// A small object is sent to whoever asks.
func TestABroadcastOfLittle(t *testing.T) {
	const size = mib
	w := newWorld(t.Fatalf, 7)
	broadcast(t, w, size, 0)
	if sent := w.nodes[0].sent; sent != 6*size {
		t.Errorf("the first node sent %d bytes", sent)
	}
}

// A node of the chain dies, or stops for a while: those behind it get the rest from others.
func TestABroadcastLosesANode(t *testing.T) {
	const size = 256 * mib
	for _, c := range []struct {
		name  string
		lose  func(*node)
		after time.Duration // until the others are to be done
		sent  int64         // by the first node, at most
	}{
		{"its process dies", func(n *node) { n.kill(true) }, 2 * time.Second, size},
		{"it vanishes", func(n *node) { n.kill(false) }, 10 * time.Second, 3 * size / 2},
		{"it stops for two seconds", func(n *node) { n.stop(2 * time.Second) }, 4 * time.Second, size},
		{"it stops", func(n *node) { n.stop(time.Hour) }, 10 * time.Second, 3 * size / 2},
	} {
		for _, which := range []int{1, 2, 3} {
			t.Run(c.name, func(t *testing.T) {
				w := newWorld(t.Fatalf, 7)
				w.nodes[0].has[thing] = size
				var all []*memory
				for _, n := range w.nodes[1:] {
					all = append(all, n.fetch(thing, size, 1))
				}
				w.run(w.hop(size)/2, nil)
				lost := w.nodes[which]
				c.lose(lost)
				w.run(c.after, nil)
				for i, m := range all {
					if n := w.nodes[i+1]; n != lost && (!m.over || m.err != nil || m.arrived > size) {
						t.Errorf("node %v after the loss of %v: over: %v, %v, %d bytes entered", n.home, lost.home, m.over, m.err, m.arrived)
					}
				}
				if sent := w.nodes[0].sent; sent > c.sent+16*mib {
					t.Errorf("after the loss of %v the first node sent %d bytes", lost.home, sent)
				}
			})
		}
	}
}

// The only node that has all of it dies: nobody waits for anybody.
func TestABroadcastLosesItsSource(t *testing.T) {
	const size = 256 * mib
	w := newWorld(t.Fatalf, 7)
	w.nodes[0].has[thing] = size
	var all []*memory
	for _, n := range w.nodes[1:] {
		all = append(all, n.fetch(thing, size, 1))
	}
	w.run(w.hop(size)/2, nil)
	w.nodes[0].kill(true)
	w.run(10*time.Second, nil)
	for i, m := range all {
		if !m.over || m.err == nil {
			t.Errorf("node %d: over: %v, %v, %d bytes", i+2, m.over, m.err, m.got)
		}
	}
}
