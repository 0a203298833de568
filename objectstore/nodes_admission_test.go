package objectstore

import (
	"testing"
	"time"

	"mobula/internal/ids"
)

// importing gives what a world is bringing from other nodes into its segment, and how many bytes that is.
func (w *world) importing() (objects []ids.ObjectID, bytes uint64) {
	for _, im := range w.nodes.asked {
		if im.Extent.File == 0 {
			objects, bytes = append(objects, im.ID), bytes+im.Extent.Size
		}
	}
	return objects, bytes
}

// largeThere puts objects of 60 % of a store of 16 MiB on another node, which has a store that holds them.
func largeThere(t *testing.T, n int, change func(*Config)) (all []*world, size uint64) {
	cfg := idleConfig()
	change(&cfg)
	all = newNodes(t, 2, cfg)
	all[0].cfg = testConfig(64 * mib)
	all[0].c = NewCore(all[0].cfg)
	all[0].join(1)
	size = 16 * mib * 6 / 10
	for i := range n {
		all[0].putSlowly(1, put(i), size)
	}
	return all, size
}

// Of objects of 60 % of the store each one is brought at a time, however many ask, for gets as for arguments: the next one when the one before has been let go.
func TestLargeImportsAreNotUnderWayTogether(t *testing.T) {
	for name, asks := range map[string]func(w *world, c ids.ClientID, i int) func(){
		"gets": func(w *world, c ids.ClientID, i int) func() {
			w.get(c, put(i))
			return func() { w.unpin(c, put(i), 1) }
		},
		"arguments": func(w *world, c ids.ClientID, i int) func() {
			w.step(PinArgs{Job: 1, Task: task(i), Worker: c, IDs: []ids.ObjectID{put(i)}})
			return func() { w.step(UnpinArgs{Task: task(i)}) }
		},
	} {
		t.Run(name, func(t *testing.T) {
			const n = 4
			all, size := largeThere(t, n, func(c *Config) { c.FallbackBytes = 0 }) // else a file takes what the segment has no room for
			b := all[1]
			release := map[ids.ObjectID]func(){}
			for i := range n {
				c := ids.ClientID(10 + i)
				b.join(c)
				b.tell(put(i), size, all[0])
				release[put(i)] = asks(b, c, i)
			}
			came := func(id ids.ObjectID) bool {
				o := b.c.objs[id].o
				return o != nil && o.resident
			}
			done := map[ids.ObjectID]bool{}
			for len(done) < n {
				busy := false
				for _, w := range all {
					busy = w.run(nil) || busy
					if on, bytes := b.importing(); len(on) > 1 || bytes+b.c.Stats().Pinned > 16*mib {
						t.Fatalf("%v are brought together, with %d bytes pinned", on, b.c.Stats().Pinned)
					}
				}
				for id, let := range release {
					if !done[id] && came(id) {
						done[id] = true
						let()
						busy = true
					}
				}
				if !busy {
					t.Fatalf("%d of %d have come, and nothing is under way", len(done), n)
				}
			}
			if s := b.c.Stats(); s.Imports != n || s.ImportedBytes != n*size {
				t.Errorf("%d imports, %d bytes", s.Imports, s.ImportedBytes)
			}
		})
	}
}

// What a get waits for is brought before what only the arguments of tasks need, though these came first.
func TestGetsAreBroughtBeforeArguments(t *testing.T) {
	all, size := largeThere(t, 3, func(*Config) {})
	a, b := all[0], all[1]
	b.join(2)
	b.put(2, put(9), size)
	b.get(2, put(9)) // there is room for nothing else
	for i := range 3 {
		b.tell(put(i), size, a)
	}
	b.step(PinArgs{Job: 1, Task: task(0), Worker: 2, IDs: []ids.ObjectID{put(0)}})
	b.step(PinArgs{Job: 1, Task: task(1), Worker: 2, IDs: []ids.ObjectID{put(1)}})
	b.get(2, put(2))
	b.step(Free{[]ids.ObjectID{put(9)}})
	b.unpin(2, put(9), 1)
	b.runUntilAsked()
	if on, _ := b.importing(); len(on) != 1 || on[0] != put(2) {
		t.Fatalf("brought first: %v, want what the get waits for", on)
	}
	settleAll(all, 0)
	b.unpin(2, put(2), 1)
	settleAll(all, 0)
	b.step(UnpinArgs{Task: task(0)})
	settleAll(all, time.Minute)
	if _, ok := b.argsOK[NoteKey{Task: task(1)}]; !ok || len(b.lost) > 0 {
		t.Errorf("the second task waits still; lost: %+v", b.lost)
	}
}

// Whoever asks for an object, of any job, each byte enters the node once: what was brought for one job is copied for another.
func TestBytesEnterANodeOnce(t *testing.T) {
	for name, order := range map[string][]ids.ClientID{"its own job first": {10, 20, 30}, "another job first": {20, 30, 10}} {
		t.Run(name, func(t *testing.T) {
			all := newNodes(t, 2, testConfig(64*mib))
			a, b := all[0], all[1]
			a.join(1)
			a.put(1, put(1), 3*mib)
			b.join(10)
			b.joinJob(20, 2)
			b.joinJob(30, 3)
			b.tell(put(1), 3*mib, a)
			for i, c := range order {
				b.get(c, put(1))
				settleAll(all, time.Minute)
				if s := b.c.Stats(); len(b.resolved) != i+1 || !b.got(put(1)) || s.ImportedBytes != 3*mib {
					t.Fatalf("client %v: %d gets are answered, and %d bytes of %d were brought", c, len(b.resolved), s.ImportedBytes, 3*mib)
				}
			}
			for _, c := range order {
				b.unpin(c, put(1), 1)
			}
			lose(all, a)
			b.get(10, put(1)) // the copy of its own job is one that its owner knows of
			settleAll(all[1:], time.Minute)
			if !b.got(put(1)) || len(b.resolved) != 4 {
				t.Errorf("after the loss of the other node: %+v", b.lost)
			}
		})
	}
}
