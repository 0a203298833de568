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
