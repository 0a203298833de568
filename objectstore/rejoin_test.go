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
		w.step(Drained{Epoch: w.epoch})
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

// A store's core is lost after it has answered a get, whose reader unpins at once. The next core has the get once more, and answers it once more: the unpin, which
// comes before the client says what it holds, is not of that answer's pin.
func TestAnUnpinOfBeforeARestartIsNotOfWhatWasPinnedSince(t *testing.T) {
	w := newWorld(t, testConfig(16*mib))
	w.join(1)
	w.put(1, put(1), 4*mib)
	w.crash(true)
	w.step(Drained{Epoch: w.epoch})
	w.step(PinForGet{Client: 1, ID: put(1)})
	w.c.Step(w.now, FromClient{1, &wire.Unpin{ID: put(1), N: 1}})
	w.step(FromClient{1, &wire.Holdings{Component: wire.ComponentStore, Epoch: w.epoch}})
	w.step(Free{[]ids.ObjectID{put(1)}})
	if w.c.alloc.Held() == 0 {
		t.Fatal("the memory that the client reads is free")
	}
	w.unpin(1, put(1), 1)
	if w.c.alloc.Held() != 0 {
		t.Fatalf("%d bytes are held for nobody", w.c.alloc.Held())
	}
}
