package objectstore

import (
	"testing"

	"mobula/internal/ids"
	"mobula/wire"
)

// A writer that gave up has brought memory to where a reservation was on its way, which fails, as does the next writer's. It is given back with
// the block: else the next job's file gets memory for the same pages.
func TestMemoryThatAWriterBroughtGoesWithTheBlock(t *testing.T) {
	cfg := testConfig(16 * mib)
	cfg.ColdFrom = 1
	w := newWorld(t, cfg)
	w.joinJob(1, 1)
	w.joinJob(2, 2)
	w.put(2, put(1), 100)
	w.relist(0)
	for i := 2; len(w.jobs) == 0; i++ { // until the store reserves ahead of demand
		w.write(2, 0, w.created[w.create(2, put(i), 0, w.c.alloc.Warm(), ids.TaskID{})])
	}
	look := func(id ids.ObjectID) uint64 {
		t.Helper()
		r := w.create(2, id, 0, mib, ids.TaskID{})
		if len(w.jobs) != 2 || w.created[r] != nil {
			t.Fatalf("%d pieces of work under way, created %+v", len(w.jobs), w.created[r])
		}
		return r
	}
	runSecond := func() {
		j := w.jobs[1]
		w.jobs = w.jobs[:1]
		j.run()
	}
	r := look(put(100))
	runSecond()
	w.write(2, 0, w.created[r]) // brings memory to what is reserved ahead
	delete(w.owned, owner{id: put(100), client: 2})
	w.step(FromClient{2, &wire.Abort{ID: put(100)}})
	look(put(101))
	w.noMem = true
	for range 2 {
		w.run(nil)
	}
	w.step(FromClient{2, &wire.Abort{ID: put(101)}})
	w.noMem = false
	w.relist(int64(cfg.Stall))
	w.put(1, put(102), 12*mib) // checks that no page has memory twice
}

// Who seals nothing may have touched no page of what was granted cold: the next who gets the block gets memory for it. So it is in the store's
// next life, which does not know how it was granted.
func TestASealOfNothingHasBroughtNoMemory(t *testing.T) {
	for _, crash := range []func(w *world){func(*world) {}, func(w *world) { w.crash(true) }, func(w *world) { w.crash(false) }} {
		cfg := testConfig(16 * mib)
		cfg.ColdFrom = 1
		w := newWorld(t, cfg)
		w.join(1)
		r := w.create(1, put(1), 0, mib, ids.TaskID{})
		w.relist(0)
		m := w.created[r]
		w.own(owner{id: m.ID, client: 1}, m.Extent)
		w.seal(1, 0, m, 0)
		w.cold = nil // what is written there next is no more told to bring memory
		crash(w)
		w.join(2)
		w.step(ClientGone{1})
		w.step(Free{IDs: []ids.ObjectID{put(1)}})
		w.relist(0)
		w.put(2, put(2), 16*mib) // checks that each page has memory
	}
}
