package shell

import (
	"bytes"
	"slices"
	"testing"

	"mobula/internal/ids"
	"mobula/internal/testkit"
	"mobula/objectstore"
	"mobula/objectstore/segment"
)

// A node comes back with another place to spill to. What lies in the one before alone its owner is not told of, in this life; what is in memory is written again
// before its memory is used.
func TestWhatLiesInAPlaceThatIsNotThereAnyMore(t *testing.T) {
	before, after := t.TempDir(), t.TempDir()
	mem := segment.Config{Path: killedMemory(before).Path}
	t.Cleanup(func() { _ = removeAll(mem.Path) })
	in := func(dir string) *rig {
		cfg := spillConfig(dir)
		cfg.Node, cfg.Restarts, cfg.Keep = "n", true, true
		return newRig(t, killedConfig(), cfg, mem)
	}
	listed := func(r *rig, ask uint64) map[int]bool {
		r.post(objectstore.ListObjects{Job: 1, Ask: ask})
		there := make(map[int]bool)
		testkit.Eventually(t, "an answer", func() bool {
			r.mu.Lock()
			defer r.mu.Unlock()
			k := slices.IndexFunc(r.invent, func(inv objectstore.Inventory) bool { return inv.Ask == ask })
			if k < 0 {
				return false
			}
			for _, s := range r.invent[k].Objects {
				there[int(s.ID.Index&^ids.PutBit)] = true
			}
			return true
		})
		return there
	}

	r := in(before)
	u := r.join(7)
	for i := range 24 {
		u.put(put(i), pattern(i, mib/2))
	}
	if _, err := u.get(put(0)); err != nil { // it is in both places now
		t.Fatal(err)
	}
	u.unpin(put(0))
	if n := len(listed(r, 1)); n != 24 {
		t.Fatalf("%d of 24 objects are listed", n)
	}
	r.clientGone(7)
	r.close(false)

	r = in(after)
	there := listed(r, 2)
	if !there[0] || len(there) == 24 {
		t.Fatalf("listed are %v: the first is in memory, and some are not", there)
	}
	u = r.join(8)
	for i := 100; i < 124; i++ {
		u.put(put(i), pattern(i, mib/2))
	}
	for i := range there {
		b, err := u.get(put(i))
		if err != nil || !bytes.Equal(b, pattern(i, mib/2)) {
			t.Errorf("object %d, which was in memory, has %d bytes: %v", i, len(b), err)
		}
		u.unpin(put(i))
	}
	r.clientGone(8)
	r.close(false)

	r = in(before)
	if n := len(listed(r, 3)); n <= 24-len(there) {
		t.Errorf("when the first place is back %d of 24 are listed", n)
	}
	r.close(true)
}
