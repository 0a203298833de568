package objectstore

import (
	"testing"
	"time"

	"mobula/internal/ids"
)

// What another node waits for is read from disk while imports have all places of reads: those wait for nodes, which would otherwise wait for each other.
func TestReadsForOtherNodesDoNotWaitForImports(t *testing.T) {
	cfg := testConfig(32 * mib)
	cfg.SpillThreshold, cfg.MinSpillBytes = 0.5, 2*mib
	all := newNodes(t, 3, cfg)
	a, b, silent := all[0], all[1], all[2]
	for i, c := range []ids.ClientID{1, 2, 3} {
		all[i].join(c)
	}
	silent.nodes.hold = true
	for k := range 12 {
		a.putSlowly(1, put(k), 2*mib)
		a.relist(int64(time.Second))
	}
	for k := range cfg.MaxRestores {
		silent.put(3, put(50+k), mib)
		a.tell(put(50+k), mib, silent)
		a.get(1, put(50+k))
	}
	settleAll(all, 0)
	if len(a.nodes.asked) != cfg.MaxRestores {
		t.Fatalf("%d imports are under way, want %d", len(a.nodes.asked), cfg.MaxRestores)
	}
	if o := a.c.objs[put(0)].o; o.resident || !o.spilled {
		t.Fatal("the object is in memory")
	}
	a.get(1, put(0)) // it waits for a place, until another node asks
	b.tell(put(0), 2*mib, a)
	b.get(2, put(0))
	settleAll(all, 0)
	if !b.got(put(0)) || !a.got(put(0)) {
		t.Errorf("it did not arrive: %+v; there %+v", b.c.Stats(), a.c.Stats())
	}
}
