package transfer

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"mobula/internal/ids"
	"mobula/objectstore/spill"
)

func object(n int) Object { return Object{ID: ids.RootTask(1, 1).Put(uint32(n))} }

// A cut in the middle costs what was under way, whoever sends the rest.
func TestACutTransferGoesOn(t *testing.T) {
	const size = 256 * mib
	for _, c := range []struct {
		name string
		from []ids.Home
		cut  func(*world)
	}{
		{"the connection breaks", []ids.Home{1}, func(w *world) { w.breakOff(sorted(w.nodes[0].ends)[0], errReset) }},
		{"the holder dies", []ids.Home{1, 2}, func(w *world) { w.nodes[0].kill(true) }},
		{"the holder is declared dead", []ids.Home{1, 2}, func(w *world) { w.nodes[2].step(Gone{1}) }},
		{"the holder stops", []ids.Home{1, 2}, func(w *world) { w.nodes[0].stop(time.Hour) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t.Fatalf, 3)
			w.nodes[0].has[thing], w.nodes[1].has[thing] = size, size
			m := w.nodes[2].fetch(thing, size, c.from...)
			w.run(w.hop(size)/2, nil)
			c.cut(w)
			began := w.now
			w.run(time.Minute, func() bool { return m.over })
			if !m.over || m.err != nil {
				t.Fatalf("over: %v, %v", m.over, m.err)
			}
			if sent := w.nodes[0].sent + w.nodes[1].sent; sent > size*11/10 {
				t.Errorf("%d of %d bytes were sent", sent, size)
			}
			if took := time.Duration(w.now - began); took > 5*time.Second {
				t.Errorf("the second half took %v", took)
			}
		})
	}
}

func TestNoNodeHasIt(t *testing.T) {
	for _, c := range []struct {
		name    string
		prepare func(*world)
		missing bool
	}{
		{"all say so", func(*world) {}, true},
		{"one cannot be reached", func(w *world) { w.nodes[1].cut = true }, false},
		{"one accepts and never answers", func(w *world) { w.nodes[1].stop(time.Hour) }, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t.Fatalf, 3)
			c.prepare(w)
			m := w.nodes[2].fetch(thing, mib, 1, 2)
			w.run(time.Minute, func() bool { return m.over })
			switch {
			case !m.over:
				t.Fatal("it does not end")
			case !errors.Is(m.err, ErrNoHolder), errors.Is(m.err, spill.ErrMissing) != c.missing:
				t.Error(m.err)
			case !strings.Contains(m.err.Error(), "node 1: "+Missing.String()), !strings.Contains(m.err.Error(), "node 2: "):
				t.Errorf("it does not say why: %v", m.err)
			}
		})
	}
}

// What is asked for again while it comes enters the node once.
func TestConcurrentFetchesAreOne(t *testing.T) {
	const size = 32 * mib
	w := newWorld(t.Fatalf, 2)
	w.nodes[0].has[thing] = size
	a := w.nodes[1].fetch(thing, size, 1)
	b := w.nodes[1].fetch(thing, size, 1)
	w.run(time.Second, nil)
	if !a.over || !b.over || a.err != nil || b.err != nil || a.arrived != size || b.arrived != 0 {
		t.Errorf("%+v, %+v", a, b)
	}
}

// A fetch whose holders are of no use takes others that it hears of.
func TestSourcesThatAreNamedLater(t *testing.T) {
	const size = 32 * mib
	w := newWorld(t.Fatalf, 3)
	w.nodes[0].has[thing], w.nodes[1].has[thing] = size, size
	w.nodes[0].stop(time.Hour)
	m := w.nodes[2].fetch(thing, size, 1)
	w.run(time.Second, nil)
	w.nodes[2].step(Sources{Object: thing, On: []ids.Home{2, 3}})
	w.run(5*time.Second, nil)
	if !m.over || m.err != nil {
		t.Errorf("over: %v, %v", m.over, m.err)
	}
}

// What is under way is bounded, and what waits for room begins in the order in which it was asked for.
func TestWhatIsUnderWayIsBounded(t *testing.T) {
	const size = 10 * mib
	w := newWorld(t.Fatalf, 3, func(c *Config) { c.PeerBytes, c.AllBytes = 16*mib, 24*mib })
	var all []*memory
	n := w.nodes[2]
	for i := range 100 {
		h := ids.Home(1 + i%2)
		w.node(h).has[object(i)] = size
		all = append(all, n.fetch(object(i), size, h))
	}
	for range 10_000 {
		w.run(time.Millisecond, nil)
		under := map[ids.Home]int64{}
		begun := len(all)
		for i, m := range all {
			f := n.core.fetches[object(i)]
			switch {
			case m.over:
			case f.pull != nil:
				under[m.from[0]] += f.pull.limit - m.got
			default:
				begun = min(begun, i)
			}
		}
		if under[1] > 16*mib || under[2] > 16*mib || under[1]+under[2] > 24*mib {
			t.Fatalf("under way: %v", under)
		}
		if begun == len(all) && n.core.underWay == 0 {
			break
		}
	}
	for i, m := range all {
		if !m.over || m.err != nil {
			t.Fatalf("fetch %d: over: %v, %v", i, m.over, m.err)
		}
		if i >= 2 && all[i-2].ended > m.ended {
			t.Errorf("fetch %d of its node ends before %d", i, i-2)
		}
	}
}

// Pulls on one connection take turns.
func TestPullsShareAConnection(t *testing.T) {
	const size = 64 * mib
	w := newWorld(t.Fatalf, 2, func(c *Config) { c.Conns = 1 })
	w.nodes[0].has[object(1)], w.nodes[0].has[object(2)], w.nodes[0].has[object(3)] = size, size, mib
	a := w.nodes[1].fetch(object(1), size, 1)
	b := w.nodes[1].fetch(object(2), size, 1)
	w.run(w.hop(size)/2, nil)
	small := w.nodes[1].fetch(object(3), mib, 1)
	w.run(w.hop(20*mib), nil)
	if !small.over {
		t.Error("a small object waits for large ones")
	}
	if d := a.got - b.got; d < -2*mib || d > 2*mib {
		t.Errorf("%d and %d bytes of two objects have arrived", a.got, b.got)
	}
	w.run(time.Second, nil)
	if !a.over || !b.over {
		t.Error("they do not end")
	}
}

// A receiver that takes nothing does not keep the holder's memory for ever.
func TestAReceiverThatGivesNoCredit(t *testing.T) {
	const size = 64 * mib
	w := newWorld(t.Fatalf, 2)
	w.nodes[0].has[thing] = size
	w.nodes[1].fetch(thing, size, 1)
	w.run(w.hop(size)/2, nil)
	w.nodes[1].kill(false)
	w.run(2*time.Minute, nil)
	if k := len(w.nodes[0].pins); k != 0 {
		t.Errorf("%d objects are pinned for it", k)
	}
}

// Connections that are not used any more are closed.
func TestIdleConnectionsGo(t *testing.T) {
	w := newWorld(t.Fatalf, 2)
	w.nodes[0].has[thing] = mib
	w.nodes[1].fetch(thing, mib, 1)
	w.run(10*time.Second, nil)
	if len(w.nodes[1].ends) != 1 {
		t.Errorf("%d connections after a fetch", len(w.nodes[1].ends))
	}
	w.run(2*time.Minute, nil)
	if len(w.nodes[1].ends) != 0 || len(w.due) != 0 {
		t.Errorf("%d connections, %d timers", len(w.nodes[1].ends), len(w.due))
	}
}

// Breaks do not add up while something arrives between them.
func TestATransferThatBreaksOftenGoesOn(t *testing.T) {
	const size = 256 * mib
	w := newWorld(t.Fatalf, 2)
	w.nodes[0].has[thing] = size
	m := w.nodes[1].fetch(thing, size, 1)
	for i := range int64(10) {
		w.run(time.Second, func() bool { return m.got > (i+1)*20*mib })
		for _, e := range sorted(w.nodes[0].ends) {
			w.breakOff(e, errReset)
		}
	}
	w.run(time.Second, nil)
	if !m.over || m.err != nil || w.nodes[0].sent > size+100*mib {
		t.Errorf("over: %v, %v, %d bytes were sent", m.over, m.err, w.nodes[0].sent)
	}
}

// A holder that needs long to read the object says that it lives.
func TestAHolderThatRestoresIsWaitedFor(t *testing.T) {
	w := newWorld(t.Fatalf, 2)
	w.nodes[0].has[thing], w.nodes[0].restores = mib, 20*time.Second
	m := w.nodes[1].fetch(thing, mib, 1)
	w.run(21*time.Second, nil)
	if !m.over || m.err != nil {
		t.Errorf("over: %v, %v", m.over, m.err)
	}
}

// Two nodes that take each other for holders do not wait for each other.
func TestNodesThatPullFromEachOther(t *testing.T) {
	w := newWorld(t.Fatalf, 2)
	a := w.nodes[0].fetch(thing, mib, 2)
	b := w.nodes[1].fetch(thing, mib, 1)
	w.run(time.Second, nil)
	if !a.over || !b.over || !errors.Is(a.err, ErrNoHolder) || !errors.Is(b.err, ErrNoHolder) {
		t.Errorf("over: %v and %v, %v, %v", a.over, b.over, a.err, b.err)
	}
}

// A fetch does not wait for those to whom it is relayed.
func TestTheEndDoesNotWaitForReceivers(t *testing.T) {
	const size = 64 * mib
	for _, c := range []struct {
		name string
		slow int64
		late time.Duration
	}{{"as fast", 0, 20 * time.Millisecond}, {"slow", 2 * mib, 250 * time.Millisecond}} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t.Fatalf, 4, func(c *Config) { c.Small = size })
			w.nodes[0].has[thing] = size
			w.nodes[2].slow, w.nodes[3].slow = c.slow, c.slow
			m := w.nodes[1].fetch(thing, size, 1)
			x, y := w.nodes[2].fetch(thing, size, 2), w.nodes[3].fetch(thing, size, 2)
			w.run(time.Second, func() bool { return m.over })
			if late := time.Duration(w.now) - w.hop(size); !m.over || late > c.late {
				t.Errorf("over: %v, %v after the last byte", m.over, late)
			}
			w.run(2*time.Minute, nil)
			if x.err != nil || y.err != nil || !x.over || !y.over {
				t.Errorf("over: %v and %v, %v, %v", x.over, y.over, x.err, y.err)
			}
		})
	}
}

// A node that has lost its holder does not wait for one that waits for it.
func TestNoNodeWaitsForItself(t *testing.T) {
	const size = 256 * mib
	w := newWorld(t.Fatalf, 4)
	w.nodes[0].has[thing] = size
	all := []*memory{w.nodes[1].fetch(thing, size, 1), w.nodes[2].fetch(thing, size, 2), w.nodes[3].fetch(thing, size, 3)}
	w.run(w.hop(size)/2, nil)
	w.nodes[0].kill(true)
	w.run(30*time.Millisecond, nil) // what has arrived is everywhere
	w.nodes[1].step(Sources{Object: thing, On: []ids.Home{4}})
	w.run(5*time.Second, nil)
	for i, m := range all {
		if !m.over || m.err == nil {
			t.Errorf("node %d: over: %v, %v, %d bytes", i+2, m.over, m.err, m.got)
		}
	}
}

// The same before anything has come: the node that has all of it is slow to begin, and the first of those that wait loses it.
func TestNoNodeWaitsForItselfAtTheBeginning(t *testing.T) {
	for _, c := range []struct {
		name string
		lose func(*node)
		ends bool // with the object
	}{
		{"the connection breaks", func(n *node) { n.w.breakOff(sorted(n.ends)[0], errReset) }, true},
		{"it cannot be read", func(n *node) { n.unread = 1 }, true},
		{"it is gone", func(n *node) { delete(n.has, thing) }, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			const size = 8 * mib
			w := newWorld(t.Fatalf, 4)
			first := w.nodes[0]
			first.has[thing], first.restores = size, 5*time.Second
			all := []*memory{w.nodes[1].fetch(thing, size, 1), w.nodes[2].fetch(thing, size, 2), w.nodes[3].fetch(thing, size, 3)}
			w.run(time.Second, nil)
			c.lose(first)
			w.run(time.Millisecond, nil)
			w.nodes[1].step(Sources{Object: thing, On: []ids.Home{4}})
			w.run(15*time.Second, nil)
			for i, m := range all {
				if !m.over || (m.err == nil) != c.ends {
					t.Errorf("node %d: over: %v, %v, %d bytes", i+2, m.over, m.err, m.got)
				}
			}
		})
	}
}

// A node that comes back to a holder is not sent on to those that were sent on to it.
func TestANodeThatComesBackIsSentOnToThoseThatAreServed(t *testing.T) {
	c := NewCore(DefaultConfig(1))
	conn := ConnID(0)
	pull := func(from ids.Home, must bool) []ids.Home {
		conn++
		c.Step(0, Connected{Conn: conn, Peer: from})
		for _, f := range c.Step(0, Got{conn, Pull{Token: uint64(conn), Object: thing, Size: 8 * mib, Limit: mib, Must: must}}) {
			if w, ok := f.(Write); ok {
				return w.Frame.(Refused).Others
			}
		}
		return nil
	}
	pull(2, false)
	if on := pull(3, false); !slices.Equal(on, []ids.Home{2}) {
		t.Fatalf("node 3 is sent on to %v", on)
	}
	pull(4, true)
	c.Step(0, Closed{1, errReset})
	if on := pull(2, false); !slices.Equal(on, []ids.Home{4}) {
		t.Errorf("node 2 is sent on to %v", on)
	}
	if on := pull(5, false); !slices.Equal(on, []ids.Home{2, 4, 3}) {
		t.Errorf("node 5 is sent on to %v", on)
	}
}

// A node whose store is asked for an object is asked once, though the object is fetched there meanwhile.
func TestAStoreIsAskedOnce(t *testing.T) {
	w := newWorld(t.Fatalf, 3)
	w.nodes[0].has[thing], w.nodes[1].restores = mib, time.Second
	b := w.nodes[2].fetch(thing, mib, 2)
	w.run(100*time.Millisecond, nil)
	a := w.nodes[1].fetch(thing, mib, 1)
	w.run(5*time.Second, nil)
	if !a.over || !b.over || a.err != nil || b.err != nil {
		t.Errorf("over: %v and %v, %v, %v", a.over, b.over, a.err, b.err)
	}
}

// An event that a core does not know is a fault that supervision reports.
func TestAnUnknownEventIsAFault(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("it is passed over")
		}
	}()
	NewCore(DefaultConfig(1)).Step(0, nil)
}
