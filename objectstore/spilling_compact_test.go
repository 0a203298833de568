package objectstore

import (
	"fmt"
	"os"
	"testing"
	"time"

	"mobula/internal/ids"
	"mobula/internal/testkit"
	"mobula/objectstore/spill"
)

// onDisk is how many bytes the spill files have.
func (w *world) onDisk() (n uint64) {
	for _, s := range w.size {
		n += s
	}
	return n
}

// spilledObjects is a store of 16 MiB that has spilled most of n objects of 256 KiB, each file of several.
func spilledObjects(t *testing.T, n int, change func(*Config)) *world {
	t.Helper()
	cfg := testConfig(16 * mib)
	if change != nil {
		change(&cfg)
	}
	w := newWorld(t, cfg)
	w.join(1)
	for i := range n {
		w.put(1, put(i), mib/4)
		w.relist(int64(100 * time.Millisecond))
	}
	return w
}

// readAll reads objects as a client does.
func (w *world) readAll(list ...int) {
	w.t.Helper()
	for _, i := range list {
		before := len(w.resolved)
		w.step(PinForGet{Client: 1, ID: put(i)})
		w.relist(int64(time.Second))
		if len(w.resolved) != before+1 || w.resolved[before].Result.Err != nil {
			w.t.Fatalf("object %d cannot be read: %+v, lost %+v", i, w.resolved[before:], w.lost)
		}
		w.unpin(1, put(i), 1)
	}
}

// freeBut frees all of n objects but each k-th, and gives those that stay.
func (w *world) freeBut(n, k int) (stay []int) {
	for i := range n {
		if i%k == 0 {
			stay = append(stay, i)
		} else {
			w.step(Free{[]ids.ObjectID{put(i)}})
		}
	}
	return stay
}

// A file of which little lives does not stay for that: for each byte that is written at least three are freed.
func TestSparseSpillFilesAreWrittenAnew(t *testing.T) {
	const n = 400
	w := spilledObjects(t, n, nil)
	before := w.onDisk()
	stay := w.freeBut(n, 8)
	w.relist(int64(time.Second))
	s := w.c.Stats()
	if after := w.onDisk(); before < 80*mib || after > before/4 || s.Compactions == 0 {
		t.Fatalf("%d bytes on disk before, %d after: %+v", before, after, s)
	}
	if s.SpillGarbage > 4*mib || s.CompactedBytes*3 > s.ReclaimedBytes+s.CompactedBytes*3/4 || s.CompactedBytes == 0 {
		t.Errorf("%d bytes were written to free %d; garbage %d", s.CompactedBytes, s.ReclaimedBytes, s.SpillGarbage)
	}
	w.readAll(stay...)
	w.step(DropJob{1})
	w.relist(int64(time.Second))
	if len(w.disk) != 0 || len(w.c.files.byKey) != 0 || w.c.files.size != 0 {
		t.Errorf("left on disk: %d objects, %+v", len(w.disk), w.c.files)
	}
}

// A little garbage is left where it is.
func TestALittleGarbageStays(t *testing.T) {
	w := spilledObjects(t, 80, func(c *Config) { c.SpillGarbage = 1 })
	w.freeBut(80, 8)
	w.relist(int64(time.Second))
	if s := w.c.Stats(); s.Compactions != 0 || s.SpillGarbage == 0 {
		t.Errorf("%+v", s)
	}
}

// Those who wait for memory go first.
func TestDemandsGoBeforeCompaction(t *testing.T) {
	w := spilledObjects(t, 400, func(c *Config) { c.SpillGarbage = 100 })
	stay := w.freeBut(400, 8)
	w.relist(0)
	w.put(1, put(1000), 8*mib)
	w.step(PinForGet{Client: 1, ID: put(1000)})
	r := w.create(1, put(1001), 0, 12*mib, ids.TaskID{})
	w.c.cfg.SpillGarbage = 0
	w.step(Tick{})
	if w.c.copying || w.created[r] != nil {
		t.Fatal("spill files are written anew while a create waits")
	}
	w.unpin(1, put(1000), 1)
	w.relist(int64(time.Second))
	if m := w.created[r]; m == nil || m.Err != nil {
		t.Fatalf("the create: %+v", m)
	}
	if w.c.counts.Compactions == 0 {
		t.Error("nothing was written anew when nobody waited")
	}
	_ = stay
}

// Before a create ends for want of disk, what garbage takes of it is used.
func TestAFullDiskIsCompacted(t *testing.T) {
	w := spilledObjects(t, 400, func(c *Config) { c.SpillGarbage, c.FallbackBytes = 100, 0 })
	stay := w.freeBut(400, 8)
	w.relist(int64(time.Second))
	full := w.onDisk() // and not a byte more
	if w.c.counts.Compactions != 0 {
		t.Fatal("there was room")
	}
	w.most = full
	w.put(1, put(1000), 8*mib)
	r := w.create(1, put(1001), 0, 12*mib, ids.TaskID{})
	w.relist(int64(10 * time.Second))
	if m := w.created[r]; m == nil || m.Err != nil {
		t.Fatalf("a create, with %d bytes of garbage on the disk: %+v", w.c.Stats().SpillGarbage, m)
	}
	if w.c.counts.Compactions == 0 || w.c.counts.SpillErrors == 0 {
		t.Errorf("the disk was not full: %+v", w.c.counts)
	}
	w.readAll(stay...)
}

// A core that is made anew learns from spill storage how large the files are.
func TestGarbageOfBeforeARestartIsFound(t *testing.T) {
	w := spilledObjects(t, 400, func(c *Config) { c.SpillGarbage = 100 })
	stay := w.freeBut(400, 8)
	w.relist(int64(time.Second))
	was := w.c.Stats().SpillGarbage
	w.crash(false)
	w.step(ClientGone{1})
	w.join(1)
	if n := w.c.Stats().SpillGarbage; n != 0 {
		t.Fatalf("%d bytes of garbage, and nobody knows how large the files are", n)
	}
	w.c.cfg.SpillGarbage = 0
	w.step(Drained{Epoch: w.epoch, Sizes: w.size})
	w.relist(int64(time.Second))
	if s := w.c.Stats(); s.Compactions == 0 || s.ReclaimedBytes < was*9/10 {
		t.Errorf("%d bytes of garbage before the restart: %+v", was, s)
	}
	w.readAll(stay...)
}

// A file that cannot be read is left to those who ask for what is in it, and holds up no other.
func TestABrokenSpillFileHoldsUpNoOther(t *testing.T) {
	for _, why := range []error{spill.ErrCorrupt, spill.ErrMissing} {
		w := spilledObjects(t, 400, func(c *Config) { c.SpillGarbage = 100 })
		w.freeBut(400, 8)
		w.relist(int64(time.Second))
		broken := w.c.files.sparsest(0, 0)[0].key
		w.rotten[broken.File] = fmt.Errorf("file %d: %w", broken.File, why)
		w.c.cfg.SpillGarbage = 0
		w.relist(int64(time.Minute))
		if f := w.c.files.byKey[broken]; f == nil || !f.broken {
			t.Errorf("the broken file is %+v", f)
		}
		if s := w.c.Stats(); s.Compactions == 0 || w.c.files.sparse != 0 || len(w.gone) != 0 {
			t.Errorf("%+v, %d bytes are left in sparse files", s, w.c.files.sparse)
		}
	}
}

// What is freed, read, pinned or restored while it is copied keeps its place, or loses both.
func TestObjectsMayGoWhileTheyAreCopied(t *testing.T) {
	w := spilledObjects(t, 400, func(c *Config) { c.SpillGarbage = 100 })
	stay := w.freeBut(400, 8)
	w.relist(int64(time.Second))
	w.c.cfg.SpillGarbage = 0
	w.step(Tick{})
	if !w.c.copying {
		t.Fatal("nothing is written anew")
	}
	var j *copyJob
	for _, v := range w.c.jobs {
		if c, is := v.(*copyJob); is {
			j = c
		}
	}
	if len(j.objs) < 4 {
		t.Fatalf("%d objects are copied", len(j.objs))
	}
	copying := w.jobs
	w.jobs = nil
	freed, read, kept := j.objs[0].id, j.objs[1].id, j.objs[2].id
	w.step(Free{[]ids.ObjectID{freed}})
	w.step(PinForGet{Client: 1, ID: kept}) // is in memory before, and pinned
	w.relist(0)
	w.step(PinForGet{Client: 1, ID: read}) // is read from the old file after that has gone
	reading := w.jobs
	w.jobs = copying
	w.relist(0)
	w.jobs = append(w.jobs, reading...)
	w.relist(int64(time.Second))
	if len(w.resolved) != 2 || w.resolved[0].Result.Err != nil || w.resolved[1].Result.Err != nil || len(w.lost) != 0 {
		t.Fatalf("read: %+v, lost %+v", w.resolved, w.lost)
	}
	w.unpin(1, read, 1)
	w.unpin(1, kept, 1)
	w.step(Free{[]ids.ObjectID{kept}})
	for _, i := range stay {
		if id := put(i); id != freed && id != kept {
			w.readAll(i)
		}
	}
	w.step(DropJob{1})
	w.relist(int64(time.Second))
	if len(w.disk) != 0 || len(w.size) != 0 {
		t.Errorf("%d objects and %d files are left on the disk", len(w.disk), len(w.size))
	}
}

// wave makes objects, has them spilled, and frees most of what there is.
func (x *chaos) wave() {
	for range 20 {
		x.n++
		c := creation{client: x.client(), id: put(x.n), size: uint64(x.rnd.Intn(int(x.cfg.Limit) / 64))}
		x.open[x.create(c.client, c.id, 0, c.size, ids.TaskID{})] = c
	}
	for range 4 {
		for x.run(x.rnd) {
			x.absorb()
		}
		x.absorb()
		for len(x.granted) > 0 {
			x.finish(0, true)
		}
		x.step(SetMemoryTarget{1})
	}
	x.now += int64(time.Second)
	x.step(SetMemoryTarget{0})
	for len(x.alive) > 4 {
		x.freeOne()
	}
}

// Whatever happens while spill files are written anew, and wherever the core is lost at the end of it: nothing is lost, and nothing is left.
func TestChaosOfCompaction(t *testing.T) {
	seeds := 16
	if testing.Short() {
		seeds = 4
	}
	if os.Getenv("MOBULA_STRESS") != "" {
		seeds = 2000
	}
	var copies, lost int
	for _, seed := range testkit.Seeds(t, seeds) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			x := newChaos(t, seed, []uint64{mib, 300 * 1024, 8 * mib}[seed%3], func(c *Config) {
				c.SpillThreshold, c.MinSpillBytes, c.MaxFused, c.MaxSpills, c.SpillGarbage = 0.05, c.Limit, 2000, 4, 0
			})
			for range 300 {
				x.act()
				if x.rnd.Intn(10) == 0 {
					x.wave()
				}
			}
			x.end()
			copies, lost = copies+x.copies, lost+x.lostInCopies
		})
	}
	t.Logf("%d writes of spill files anew; %d cores were lost at the end of one", copies, lost)
	if !t.Failed() && (copies < seeds || lost < seeds/10) {
		t.Errorf("%d writes of spill files anew, %d cores lost at the end of one: this shows little", copies, lost)
	}
}
