package objectstore

import (
	"slices"
	"testing"

	"mobula/internal/ids"
	"mobula/wire"
)

// A client that was away when a rebuilt store asked what it holds is asked when it is back: until it has
// said so, nothing from before can be spilled or freed.
func TestAClientThatComesBackIsAskedAgain(t *testing.T) {
	for _, killed := range []bool{false, true} { // the node's process, before the store's panic
		w := newWorld(t, testConfig(16*mib))
		w.join(1)
		w.put(1, put(1), 4*mib)
		if killed {
			w.crash(false)
		}
		w.crash(true)
		w.step(Drained{w.epoch})
		w.resyncs = nil // the answer is lost with the connection
		w.join(1)
		if !slices.Equal(w.resyncs, []ids.ClientID{1}) {
			t.Fatalf("node killed: %v: asked were %v", killed, w.resyncs)
		}
		for range 2 { // one may answer twice
			w.step(FromClient{1, &wire.Holdings{Component: wire.ComponentStore, Epoch: w.epoch}})
		}
		w.step(Free{[]ids.ObjectID{put(1)}})
		if w.c.alloc.Held() != 0 {
			t.Fatalf("node killed: %v: %d bytes are held for nobody", killed, w.c.alloc.Held())
		}
	}
}
