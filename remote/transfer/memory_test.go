package transfer

import (
	"errors"
	"testing"
	"time"
)

// A node that has no memory for what comes says so at once, and asks nobody else. What else comes from the same node goes on.
func TestAFetchWithoutMemory(t *testing.T) {
	const size = 64 * mib
	w := newWorld(t.Fatalf, 3)
	other := object(2)
	for _, n := range w.nodes[:2] {
		n.has[thing], n.has[other] = size, size
	}
	m, on := w.nodes[2].fetch(thing, size, 1, 2), w.nodes[2].fetch(other, size, 1)
	w.run(w.hop(size)/2, nil)
	full := errors.New("no memory")
	c := w.nodes[2].core
	w.nodes[2].step(NoMemory{Token: c.fetches[thing].pull.token, Err: full})
	if !m.over || !errors.Is(m.err, full) {
		t.Fatalf("over: %v, %v", m.over, m.err)
	}
	w.nodes[2].step(NoMemory{Token: 1 << 60, Err: full}) // of a pull that has ended
	w.run(time.Minute, func() bool { return on.over })
	if !on.over || on.err != nil || w.nodes[1].sent != 0 {
		t.Errorf("the other one: over %v, %v; the second holder has sent %d bytes", on.over, on.err, w.nodes[1].sent)
	}
}

// However many small objects a node wants of one other, and in however many pulls: those under way are bounded, by who pulls and by who sends, and all come.
func TestPullsOfOneNodeAreBounded(t *testing.T) {
	const objects, atOnce = 400, 64
	for name, c := range map[string]struct {
		set  func(*Config)
		most int
	}{
		"who pulls": {func(c *Config) { c.PeerBytes = atOnce * leastShare }, atOnce},
		"who sends": {func(c *Config) { c.PeerPulls, c.Tries, c.RetryMin = atOnce, 12, time.Millisecond }, atOnce},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t.Fatalf, 2, c.set)
			var all []*memory
			for i := range objects {
				w.nodes[0].has[object(i)] = 100
				all = append(all, w.nodes[1].fetch(object(i), 100, 1))
			}
			most, left := 0, objects
			for range 1000 {
				w.run(time.Second, func() bool { most = max(most, len(w.nodes[0].core.sends)); return false })
				left = 0
				for _, m := range all {
					if !m.over {
						left++
					} else if m.err != nil {
						t.Fatal(m.err)
					}
				}
				if left == 0 {
					break
				}
			}
			if left > 0 || most > c.most || most == 0 {
				t.Errorf("%d objects have not come, %d pulls were served at once, at most %d are to be", left, most, c.most)
			}
		})
	}
}
