package objectstore

import (
	"testing"
	"time"

	"mobula/internal/ids"
	"mobula/wire"
)

// The store gives memory back when it has less room, keeps what is pinned, and takes the room again.
func TestStoreGivesWay(t *testing.T) {
	w := newWorld(t, testConfig(16*mib))
	w.join(1)
	for i := range 6 {
		w.put(1, put(i), 2*mib)
	}
	w.step(PinForGet{Client: 1, ID: put(0)})
	if w.c.alloc.Backed() < 12*mib {
		t.Fatalf("%d bytes are backed, of 12 MiB that were written", w.c.alloc.Backed())
	}
	w.step(SetMemoryTarget{5 * mib})
	w.relist(int64(time.Second))
	if b := w.c.alloc.Backed(); b > 5*mib || b < 2*mib {
		t.Fatalf("%d bytes are backed, with room for 5 MiB of which 2 are pinned", b)
	}
	if s := w.c.Stats(); s.SpilledBytes == 0 {
		t.Errorf("nothing was spilled: %+v", s.Counters)
	}
	// What is asked for is served, and what lies idle goes for it.
	for i := range 6 {
		w.step(PinForGet{Client: 1, ID: put(i)})
		w.relist(int64(time.Second))
		w.unpin(1, put(i), 1)
	}
	if n := len(w.resolved); n != 7 {
		t.Fatalf("%d of 7 gets are answered", n)
	}
	w.relist(int64(time.Second))
	if b := w.c.alloc.Backed(); b > 5*mib {
		t.Errorf("%d bytes are backed after the gets", b)
	}
	w.step(SetMemoryTarget{})
	for i := 10; i < 14; i++ {
		w.put(1, put(i), 2*mib)
	}
	w.relist(int64(100 * time.Millisecond))
	if b := w.c.alloc.Backed(); b < 10*mib {
		t.Errorf("%d bytes are backed with all of the room again", b)
	}
}

// A store that comes back and is not used gives the memory back that it had ready.
func TestRebuiltStoreGivesBackWhatIsIdle(t *testing.T) {
	w := newWorld(t, testConfig(16*mib))
	w.join(1)
	for i := range 6 {
		w.put(1, put(i), 2*mib)
	}
	w.crash(true)
	w.step(FromClient{1, &wire.Holdings{Component: wire.ComponentStore, Epoch: w.epoch}})
	w.step(Drained{Epoch: w.epoch})
	for i := range 6 {
		w.step(Free{[]ids.ObjectID{put(i)}})
	}
	w.relist(int64(w.cfg.WarmIdle + time.Second))
	if b := w.c.alloc.Backed(); b > w.cfg.WarmBytes {
		t.Errorf("%d bytes are backed and nothing is held: %+v", b, w.c.Stats())
	}
}

// Room decides nothing: with room for a byte, all that fits the limit can be made and pinned.
func TestWithoutRoomEverythingIsServed(t *testing.T) {
	w := newWorld(t, testConfig(16*mib))
	w.join(1)
	w.step(SetMemoryTarget{1})
	for i := range 4 {
		w.put(1, put(i), 3*mib)
		w.step(PinForGet{Client: 1, ID: put(i)})
		w.relist(int64(time.Second))
	}
	if n := len(w.resolved); n != 4 {
		t.Fatalf("%d of 4 objects that fit are pinned", n)
	}
	r := w.create(1, put(9), 0, 4*mib, ids.TaskID{})
	w.relist(int64(time.Second))
	if m := w.created[r]; m == nil || m.Err != nil || m.Extent.File != 0 {
		t.Fatalf("what is left of the limit: %+v", m)
	}
}
