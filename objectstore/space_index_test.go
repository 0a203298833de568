package objectstore

import (
	"testing"

	"mobula/internal/ids"
)

// What the index grows by is taken from what is free, or else from whatever is let go of first; objects that lie in memory stay.
func TestTheIndexIsInTheLimit(t *testing.T) {
	w := newWorld(t, testConfig(8*mib))
	w.join(1)
	for i := range 4 {
		w.put(1, put(i), 2*mib)
		w.step(PinForGet{Client: 1, ID: put(i)})
	}
	w.step(IndexSize{mib + 1})
	if s := w.c.Stats(); s.Held != 8*mib || w.c.alloc.Withheld() != 0 {
		t.Fatalf("everything is pinned: %+v", s)
	}
	w.unpin(1, put(2), 1)
	w.step(Free{[]ids.ObjectID{put(2)}})
	if s := w.c.Stats(); s.Held != 6*mib || s.Index != mib+4096 || w.c.alloc.Withheld() != s.Index || s.Backed+s.Index > s.Limit {
		t.Fatalf("2 MiB are free again: %+v, %d withheld", s, w.c.alloc.Withheld())
	}
	w.put(1, put(7), mib-4096) // the rest, to the last page
	if s := w.c.Stats(); s.Held+s.Index != s.Limit || s.FallbackBytes != 0 || s.Spills != 0 {
		t.Fatalf("the rest is not used: %+v", s)
	}
	w.step(IndexSize{100 * mib})
	for i := range 4 {
		if i != 2 {
			w.unpin(1, put(i), 1)
			w.step(Free{[]ids.ObjectID{put(i)}})
		}
	}
	if s := w.c.Stats(); s.Index != 4*mib {
		t.Fatalf("half of the limit stays for objects: %+v", s)
	}
	w.step(Free{[]ids.ObjectID{put(7)}}) // above it lay what is used again now, and below
	w.put(1, put(8), 4*mib)
	if s := w.c.Stats(); s.Fallbacks != 0 || s.Held != 4*mib {
		t.Fatalf("what is left for objects is not in one piece: %+v", s)
	}
}
