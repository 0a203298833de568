package objectstore

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/internal/testkit"
	"mobula/objectstore/spill"
	"mobula/wire"
)

// network is the other nodes of a world, and what this one has asked them for: a network in memory.
type network struct {
	home   ids.Home
	others map[ids.Home]*world
	asked  map[uint64]Import // by token
	token  uint64
	hold   bool // what others ask for is begun, and not sent
	lossy  bool // imports fail up to the last try, for no lasting reason
	tries  map[ids.ObjectID]int
	read   map[exportKey]Exported // under way to other nodes
}

var errUnreachable = errors.New("the node cannot be reached")

// newNodes makes worlds of homes 1 to n that know each other.
func newNodes(t testing.TB, n int, cfg Config) []*world {
	all := make([]*world, n)
	for i := range all {
		all[i] = newWorld(t, cfg)
		all[i].nodes = network{
			home: ids.Home(i + 1), others: map[ids.Home]*world{}, asked: map[uint64]Import{},
			tries: map[ids.ObjectID]int{}, read: map[exportKey]Exported{},
		}
	}
	for _, w := range all {
		for _, x := range all {
			if x != w {
				w.nodes.others[x.nodes.home] = x
			}
		}
	}
	return all
}

// fetch asks another node for an object.
func (w *world) fetch(e Import) {
	w.t.Helper()
	n := &w.nodes
	if e.Cold {
		if w.noMem {
			w.bringPart(e)
			w.step(RestoreDone{e.Job, errs.New(errs.CodeSegmentUnavailable, "no memory")})
			return
		}
		if n.lossy {
			w.bringPart(e)
		}
	}
	from := n.others[e.From]
	if n.tries[e.ID]++; from == nil || n.lossy && n.tries[e.ID]%maxTries != 0 {
		w.step(RestoreDone{e.Job, errUnreachable})
		return
	}
	n.token++
	n.asked[n.token] = e
	from.step(Export{To: n.home, Token: n.token, ID: e.ID, Attempt: e.Attempt})
}

// runUntilAsked lets what is under way go on until another node is asked for an object.
func (w *world) runUntilAsked() {
	w.t.Helper()
	for len(w.nodes.asked) == 0 {
		if !w.run(nil) {
			w.t.Fatal("no node is asked")
		}
	}
}

// bringPart is what a cold import has brought before it fails.
func (w *world) bringPart(e Import) { w.back(e.Place, e.Extent.Off, e.Extent.Size/2) }

// readerOf is another node as somebody who has bytes pinned.
func readerOf(e Exported) (ids.ClientID, owner) {
	c := ids.ClientID(1)<<60 | ids.ClientID(e.To)
	return c, owner{id: e.ID, client: c, attempt: uint32(e.Token), pin: true}
}

// serve begins to send an object to the node that asked for it. Nobody else writes to the bytes until they are there.
func (w *world) serve(e Exported) {
	w.t.Helper()
	k := exportKey{e.To, e.Token}
	if _, again := w.nodes.read[k]; again {
		return
	}
	if e.Err == nil {
		c, o := readerOf(e)
		w.job[c] = e.Place
		w.mapped[uint64(c)<<32|uint64(e.Extent.File)] = true
		w.own(o, e.Extent)
		w.touch(e.Place, e.Extent)
		w.nodes.read[k] = e
	}
	if !w.nodes.hold {
		w.jobs = append(w.jobs, job{run: func() { w.sent(e) }})
	}
}

// sent is the end of what serve began.
func (w *world) sent(e Exported) {
	w.t.Helper()
	if e.Err == nil {
		_, o := readerOf(e)
		delete(w.owned, o)
		delete(w.nodes.read, exportKey{e.To, e.Token})
		defer func() { w.step(ExportDone{e.To, e.Token}) }()
	}
	to := w.nodes.others[e.To]
	if to == nil {
		return // it went meanwhile
	}
	im, ok := to.nodes.asked[e.Token]
	if !ok {
		return // said twice
	}
	delete(to.nodes.asked, e.Token)
	if e.Err != nil {
		to.step(RestoreDone{im.Job, fmt.Errorf("%w: %w", spill.ErrMissing, e.Err)})
		return
	}
	to.free(im.Extent, "overwritten by an import")
	if im.Cold {
		to.back(im.Place, im.Extent.Off, im.Extent.Size)
	}
	to.touch(im.Place, im.Extent)
	to.mem[at(im.Place, im.Extent)] = w.mem[at(e.Place, e.Extent)]
	to.step(RestoreDone{im.Job, nil})
}

// lose ends a node: the others hear of it, and what they asked it for comes to nothing.
func lose(all []*world, gone *world) {
	for _, w := range all {
		if w == gone {
			continue
		}
		delete(w.nodes.others, gone.nodes.home)
		for token, im := range w.nodes.asked {
			if im.From == gone.nodes.home {
				delete(w.nodes.asked, token)
				w.jobs = append(w.jobs, job{run: func() { w.step(RestoreDone{im.Job, errUnreachable}) }})
			}
		}
		for k, e := range w.nodes.read {
			if _, o := readerOf(e); k.to == gone.nodes.home {
				delete(w.owned, o)
				delete(w.nodes.read, k)
			}
		}
		for _, x := range w.c.sortedExports() { // who reads for it ends that later
			if k := x.key(); k.to == gone.nodes.home {
				w.jobs = append(w.jobs, job{run: func() { w.step(ExportDone{k.to, k.token}) }})
			}
		}
		w.step(NodeGone{gone.nodes.home})
	}
}

// settleAll runs what is due on all nodes.
func settleAll(all []*world, d time.Duration) {
	for busy := true; busy; {
		busy = false
		for _, w := range all {
			w.relist(0)
		}
		for _, w := range all {
			busy = busy || len(w.jobs) > 0
		}
	}
	if d > 0 {
		for _, w := range all {
			w.relist(int64(d))
		}
		settleAll(all, 0)
	}
}

// tell says on one node that others have an object of this size.
func (w *world) tell(id ids.ObjectID, size uint64, on ...*world) {
	w.t.Helper()
	e := Located{ID: id, Size: size, Meta: []byte{0, 7}}
	for _, x := range on {
		e.On = append(e.On, x.nodes.home)
		if tag, ok := x.sealed[id]; ok {
			w.sealed[id] = tag
		}
	}
	w.step(e)
}

// putSlowly is put with time to spill.
func (w *world) putSlowly(c ids.ClientID, id ids.ObjectID, size uint64) {
	w.t.Helper()
	m := w.put2(c, id, size)
	w.write(c, 0, m)
	w.seal(c, 0, m, size)
}

func (w *world) get(c ids.ClientID, id ids.ObjectID) {
	w.t.Helper()
	w.step(PinForGet{Client: c, ID: id})
}

// got tells whether the last answer to a client is a view of this object.
func (w *world) got(id ids.ObjectID) bool {
	n := len(w.resolved)
	return n > 0 && w.resolved[n-1].ID == id && w.resolved[n-1].Result.Kind == wire.ResultStored
}

// idleConfig spills only when there is no other room.
func idleConfig() Config {
	cfg := testConfig(16 * mib)
	cfg.SpillThreshold = 1
	return cfg
}

func TestAnObjectIsImportedWhenItIsAskedFor(t *testing.T) {
	all := newNodes(t, 2, idleConfig())
	a, b := all[0], all[1]
	a.join(1)
	b.join(2)
	a.put(1, put(1), 3*mib)
	b.tell(put(1), 3*mib, a)
	if s := b.c.Stats(); s.Held != 0 || s.ObjectsElsewhere != 1 || s.Objects != 0 {
		t.Fatalf("known, and nobody has asked for it: %+v", s)
	}
	b.get(2, put(1))
	settleAll(all, 0)
	if !b.got(put(1)) || b.c.Stats().Imports != 1 {
		t.Fatalf("not imported: %+v, %+v", b.resolved, b.lost)
	}
	if len(a.c.exports) != 0 || a.c.Stats().Pinned != 0 {
		t.Fatalf("the other node has it pinned still: %+v", a.c.Stats())
	}
	b.unpin(2, put(1), 1)
	for i := 2; i < 7; i++ { // all of the store: what is elsewhere goes without a write
		b.put(2, put(i), 3*mib)
	}
	if s := b.c.Stats(); s.Evictions != 1 || s.SpilledObjects != 0 || s.ObjectsElsewhere != 1 {
		t.Fatalf("the copy was not the first to go: %+v", s)
	}
	b.get(2, put(1))
	settleAll(all, time.Second)
	if !b.got(put(1)) || b.c.Stats().Imports != 2 {
		t.Fatalf("not imported again: %+v, %+v", b.resolved, b.lost)
	}
	b.unpin(2, put(1), 1)
	b.step(Free{[]ids.ObjectID{put(1)}})
	if _, known := b.c.objs[put(1)]; known || b.notes.Len() != 0 {
		t.Errorf("freed, and known still: %v", b.notes.List())
	}
}

// A large object is asked for before its memory is there, and brings it as it comes.
func TestAnImportBringsItsMemory(t *testing.T) {
	cfg := idleConfig()
	cfg.ColdFrom = 2 * mib
	all := newNodes(t, 2, cfg)
	a, b := all[0], all[1]
	a.join(1)
	b.join(2)
	a.put(1, put(1), 3*mib)
	b.tell(put(1), 3*mib, a)
	b.get(2, put(1))
	b.runUntilAsked()
	if len(b.nodes.asked) != 1 || len(b.backed) != 0 {
		t.Fatalf("asked for: %+v; %d pages have memory", b.nodes.asked, len(b.backed))
	}
	settleAll(all, 0)
	if s := b.c.Stats(); !b.got(put(1)) || s.Backed < 3*mib || uint64(len(b.backed)) != s.Backed/4096 {
		t.Fatalf("%+v, %d pages have memory", s, len(b.backed))
	}
	b.unpin(2, put(1), 1)
	b.step(Free{[]ids.ObjectID{put(1)}})
	a.put(1, put(2), 3*mib)
	b.tell(put(2), 3*mib, a)
	b.get(2, put(2)) // into the same memory
	settleAll(all, 0)
	if s := b.c.Stats(); !b.got(put(2)) || s.Backed > 4*mib || uint64(len(b.backed)) != s.Backed/4096 {
		t.Fatalf("%+v", s)
	}
}

// An import whose memory cannot be had gives back what it has brought, and goes into a file. The holder is not blamed.
func TestAnImportWithoutMemory(t *testing.T) {
	cfg := idleConfig()
	cfg.ColdFrom = 2 * mib
	all := newNodes(t, 2, cfg)
	a, b := all[0], all[1]
	a.join(1)
	b.join(2)
	a.put(1, put(1), 3*mib)
	b.tell(put(1), 3*mib, a)
	b.get(2, put(1))
	if !b.run(nil) { // it looked as if there were memory
		t.Fatal("nothing is reserved")
	}
	b.noMem = true
	b.run(nil)
	if o := b.c.objs[put(1)].o; len(b.backed) != 0 || o.restore == nil || o.restore.stage != stageFallback || b.records[o.slot].Block.Size != 0 {
		t.Fatalf("%d pages have memory; %+v, %+v", len(b.backed), o.restore, b.records[o.slot])
	}
	settleAll(all, 0)
	b.relist(int64(3 * time.Second))
	settleAll(all, 0)
	if s := b.c.Stats(); !b.got(put(1)) || s.FallbackBytes != 3*mib || s.Imports != 1 {
		t.Fatalf("%+v, %+v, %+v", s, b.resolved, b.lost)
	}
}

// Of an object that its last holder sends in part nothing stays.
func TestAnImportThatFailsLeavesNoMemory(t *testing.T) {
	cfg := idleConfig()
	cfg.ColdFrom = 2 * mib
	all := newNodes(t, 2, cfg)
	a, b := all[0], all[1]
	a.join(1)
	b.join(2)
	a.put(1, put(1), 3*mib)
	b.tell(put(1), 3*mib, a)
	b.get(2, put(1))
	b.runUntilAsked()
	for _, im := range b.nodes.asked {
		b.bringPart(im)
	}
	lose(all, a)
	settleAll(all[1:], time.Minute)
	if s := b.c.Stats(); len(b.lost) != 1 || s.Held != 0 || uint64(len(b.backed)) != s.Backed/4096 {
		t.Fatalf("lost: %+v; %+v, %d pages have memory", b.lost, s, len(b.backed))
	}
}

// A core that is lost while memory comes does not count on it.
func TestAPanicForgetsWhatAnImportBrought(t *testing.T) {
	cfg := idleConfig()
	cfg.ColdFrom = 2 * mib
	all := newNodes(t, 2, cfg)
	a, b := all[0], all[1]
	a.join(1)
	b.join(2)
	a.put(1, put(1), 3*mib)
	b.tell(put(1), 3*mib, a)
	b.get(2, put(1))
	b.runUntilAsked()
	for token, im := range b.nodes.asked {
		b.bringPart(im)
		b.crash(true)
		delete(b.nodes.asked, token)
		b.step(RestoreDone{im.Job, errCancelled})
	}
	b.step(Drained{Epoch: b.epoch})
	if s := b.c.Stats(); s.Backed != 0 || len(b.backed) != 0 {
		t.Fatalf("%+v, %d pages have memory", s, len(b.backed))
	}
	settleAll(all, 0)
	if !b.got(put(1)) {
		t.Errorf("%+v, %+v", b.resolved, b.lost)
	}
}

// Arguments are imported as they are restored, and an object that its own node knows to be elsewhere too is not spilled.
func TestArgumentsAreImported(t *testing.T) {
	all := newNodes(t, 2, idleConfig())
	a, b := all[0], all[1]
	a.join(1)
	b.join(2)
	a.put(1, put(1), 3*mib)
	b.put(2, put(9), 4*mib)
	b.step(Free{[]ids.ObjectID{put(9)}}) // what is read ahead takes memory that is there
	b.tell(put(1), 3*mib, a)
	b.step(ReadAhead{[]ids.ObjectID{put(1)}})
	settleAll(all, 0)
	if s := b.c.Stats(); s.Imports != 1 || s.ReadAhead != 1 || s.Copies == 0 {
		t.Fatalf("not read ahead: %+v", s)
	}
	b.step(PinArgs{Job: 1, Task: task(1), Worker: 2, IDs: []ids.ObjectID{put(1)}})
	if _, ok := b.argsOK[NoteKey{Task: task(1)}]; !ok {
		t.Fatal("not pinned")
	}
	a.tell(put(1), 3*mib, b)
	for i := 2; i < 7; i++ {
		a.put(1, put(i), 3*mib)
	}
	if s := a.c.Stats(); s.SpilledObjects != 0 || s.ObjectsElsewhere != 1 {
		t.Fatalf("an object that another node has was spilled: %+v", s)
	}
	b.step(UnpinArgs{Task: task(1)})
	b.tell(put(1), 3*mib) // the other has it no more
	for i := 2; i < 7; i++ {
		b.putSlowly(2, put(i), 3*mib)
	}
	settleAll(all, time.Minute)
	if s := b.c.Stats(); s.SpilledObjects == 0 || s.Objects != 6 || s.Lost != 0 {
		t.Fatalf("the only copy that is left is not spilled: %+v", s)
	}
}

func TestAnImportGoesOnWithAnotherNode(t *testing.T) {
	all := newNodes(t, 3, testConfig(16*mib))
	a, b, c := all[0], all[1], all[2]
	c.join(3)
	a.join(1)
	a.put(1, put(1), mib)
	c.tell(put(1), mib, b, a) // b never had it
	c.get(3, put(1))
	settleAll(all, 0)
	if !c.got(put(1)) || len(c.lost) != 0 {
		t.Fatalf("%+v, %+v", c.resolved, c.lost)
	}
	if on := c.c.objs[put(1)].o.elsewhere; !slices.Equal(on, []ids.Home{1}) {
		t.Errorf("asked next: %v, want node 1 alone", on)
	}
	c.unpin(3, put(1), 1)

	c.tell(put(2), mib, b, a) // nobody has it
	c.get(3, put(2))
	settleAll(all, time.Minute)
	if len(c.lost) != 1 || c.lost[0].ID != put(2) || c.lost[0].Client != 3 || !errors.Is(c.lost[0].Err, errs.ErrObjectLost) {
		t.Fatalf("what nobody has: %+v", c.lost)
	}
	if _, known := c.c.objs[put(2)]; known || c.notes.Len() != 1 {
		t.Errorf("it is known still: %v", c.notes.List())
	}
}

// A node that cannot be reached for a while is no reason to lose an object.
func TestAnImportIsTriedAgain(t *testing.T) {
	all := newNodes(t, 2, testConfig(16*mib))
	a, b := all[0], all[1]
	a.join(1)
	b.join(2)
	b.nodes.lossy = true
	a.put(1, put(1), mib)
	b.tell(put(1), mib, a)
	b.get(2, put(1))
	settleAll(all, time.Minute)
	if !b.got(put(1)) || b.nodes.tries[put(1)] != maxTries {
		t.Fatalf("after %d tries: %+v, %+v", b.nodes.tries[put(1)], b.resolved, b.lost)
	}
}

// What another node reads stays where it is, spilled or not, freed or not, until it has read it or is gone.
func TestAnExportIsAPin(t *testing.T) {
	all := newNodes(t, 1, testConfig(16*mib))
	a := all[0]
	a.nodes.hold = true
	a.join(1)
	for i := range 8 { // half of them are spilled
		a.putSlowly(1, put(i), 3*mib)
	}
	for token, id := range []ids.ObjectID{put(0), put(7)} {
		a.step(Export{To: 9, Token: uint64(token), ID: id})
	}
	settleAll(all, time.Second)
	if s := a.c.Stats(); len(a.nodes.read) != 2 || s.Pinned != 6*mib || s.Restores != 1 {
		t.Fatalf("%d are read, %+v", len(a.nodes.read), s)
	}
	a.step(Free{[]ids.ObjectID{put(0), put(7)}})
	a.step(Export{To: 9, Token: 1, ID: put(7)}) // asked again
	if s := a.c.Stats(); s.Pinned != 6*mib || len(a.c.exports) != 2 {
		t.Fatalf("freed while they are read: %+v", s)
	}
	a.step(NodeGone{9}) // who reads for it may be in the middle of the bytes
	if s := a.c.Stats(); s.Pinned != 6*mib || len(a.c.exports) != 2 {
		t.Fatalf("freed while they are read for a node that is gone: %+v", s)
	}
	a.step(ExportDone{9, 0})
	a.step(ExportDone{9, 1})
	if s := a.c.Stats(); s.Pinned != 0 || len(a.c.exports) != 0 || s.Objects != 6 {
		t.Fatalf("nobody reads them any more: %+v", s)
	}
	a.step(Export{To: 9, Token: 2, ID: put(7)})
	if a.c.exports[exportKey{9, 2}] != nil {
		t.Error("an object that is not there is pinned")
	}
}

// The core is lost on both sides while an object is on its way.
func TestAPanicLosesNoImport(t *testing.T) {
	all := newNodes(t, 2, testConfig(16*mib))
	a, b := all[0], all[1]
	a.join(1)
	b.join(2)
	a.put(1, put(1), mib)
	b.tell(put(1), mib, a)
	b.get(2, put(1))
	for len(a.nodes.read) == 0 { // until the bytes are under way
		if !b.run(nil) {
			t.Fatal("nobody asks for it")
		}
	}
	a.step(Free{[]ids.ObjectID{put(1)}})
	a.crash(true)
	if len(a.c.exports) != 1 {
		t.Fatal("the other node's pin is lost")
	}
	a.step(Drained{Epoch: a.epoch})
	b.crash(true)
	for token, im := range b.nodes.asked { // what was begun ends before the new core begins anything
		delete(b.nodes.asked, token)
		b.step(RestoreDone{im.Job, errCancelled})
	}
	b.step(Drained{Epoch: b.epoch})
	settleAll(all, 0)
	if !b.got(put(1)) || len(b.lost) != 0 {
		t.Fatalf("%+v, %+v", b.resolved, b.lost)
	}
	if len(a.c.exports) != 0 || a.notes.Len() != 0 {
		t.Errorf("left of the export: %v, %v", a.c.exports, a.notes.List())
	}
}

// An object that is let go while it is imported is not there for a new core: its owner would not know of it.
func TestAPanicBringsBackNothingThatWasLetGo(t *testing.T) {
	for _, letGo := range []Event{Free{[]ids.ObjectID{put(1)}}, DropAttempt{ID: put(1)}} {
		all := newNodes(t, 2, testConfig(16*mib))
		a, b := all[0], all[1]
		a.join(1)
		b.join(2)
		a.put(1, put(1), mib)
		b.tell(put(1), mib, a)
		b.get(2, put(1))
		for len(a.nodes.read) == 0 { // until the bytes are under way
			if !b.run(nil) {
				t.Fatal("nobody asks for it")
			}
		}
		b.step(letGo)
		b.crash(true)
		for token, im := range b.nodes.asked {
			delete(b.nodes.asked, token)
			b.step(RestoreDone{im.Job, errCancelled})
		}
		b.step(Drained{Epoch: b.epoch})
		settleAll(all, 0)
		b.step(FromClient{2, &wire.Holdings{Component: wire.ComponentStore, Epoch: b.epoch}})
		if b.got(put(1)) { // who had asked for it before it was freed
			b.unpin(2, put(1), 1)
		}
		if s := b.c.Stats(); s.Objects != 0 || s.ObjectsElsewhere != 0 || b.notes.Len() != 0 {
			t.Errorf("after %T: %+v, %v", letGo, s, b.notes.List())
		}
	}
}

// Who had asked for it before gets it from a new core as from the old one, and then it goes.
func TestAPanicLosesNoImportOfWhatWasLetGo(t *testing.T) {
	for _, twice := range []bool{false, true} {
		all := newNodes(t, 2, testConfig(16*mib))
		a, b := all[0], all[1]
		a.join(1)
		b.join(2)
		a.put(1, put(1), mib)
		b.tell(put(1), mib, a)
		b.get(2, put(1))
		for len(a.nodes.read) == 0 { // until the bytes are under way
			if !b.run(nil) {
				t.Fatal("nobody asks for it")
			}
		}
		b.step(Free{[]ids.ObjectID{put(1)}})
		b.crash(true)
		if twice {
			b.crash(true)
		}
		for token, im := range b.nodes.asked {
			delete(b.nodes.asked, token)
			b.step(RestoreDone{im.Job, errCancelled})
		}
		b.step(Drained{Epoch: b.epoch})
		settleAll(all, 0)
		if !b.got(put(1)) || len(b.lost) != 0 {
			t.Fatalf("%+v, lost %+v", b.resolved, b.lost)
		}
		b.step(FromClient{2, &wire.Holdings{Component: wire.ComponentStore, Epoch: b.epoch}})
		b.unpin(2, put(1), 1)
		if s := b.c.Stats(); s.Objects != 0 || s.ObjectsElsewhere != 0 || b.notes.Len() != 0 {
			t.Errorf("left: %+v, %v", s, b.notes.List())
		}
	}
}

// An object that was let go while it is imported, and made again elsewhere, is imported anew: who waits for the old one asks once more.
func TestAnObjectThatWasLetGoIsLocatedAgain(t *testing.T) {
	for _, attempt := range []uint32{0, 1} {
		all := newNodes(t, 2, testConfig(16*mib))
		a, b := all[0], all[1]
		a.join(1)
		b.join(2)
		a.put(1, put(1), mib)
		b.tell(put(1), mib, a)
		b.get(2, put(1))
		b.step(Free{[]ids.ObjectID{put(1)}})
		b.step(Located{ID: put(1), Attempt: attempt, Size: mib, Meta: []byte{0, 7}, On: []ids.Home{1}})
		if o := b.c.objs[put(1)].o; o == nil || o.attempt != attempt || o.gone {
			t.Fatalf("attempt %d: the store has %+v", attempt, o)
		}
		if lost := len(b.lost); lost != int(attempt) {
			t.Errorf("attempt %d: %d are told that it is lost: %+v", attempt, lost, b.lost)
		}
		b.crash(true)
		if o := b.c.objs[put(1)].o; o == nil || o.attempt != attempt || o.gone {
			t.Errorf("attempt %d: a new store has %+v", attempt, o)
		}
	}
}

// What was asked for and can come from nowhere is lost, however far it is.
func TestTheLastNodeThatHasAnObjectGoes(t *testing.T) {
	for _, far := range []string{"asked for", "waits for room", "on its way", "tried again"} {
		t.Run(far, func(t *testing.T) {
			all := newNodes(t, 2, idleConfig())
			a, b := all[0], all[1]
			a.join(1)
			b.join(2)
			a.put(1, put(1), 3*mib)
			b.tell(put(1), 3*mib, a)
			switch far {
			case "waits for room":
				for i := 2; i < 7; i++ {
					b.put(2, put(i), 3*mib)
					b.get(2, put(i))
				}
				b.get(2, put(1))
			case "on its way":
				b.get(2, put(1))
				for len(a.nodes.read) == 0 {
					if !b.run(nil) {
						t.Fatal("nobody asks for it")
					}
				}
			case "tried again":
				b.nodes.lossy = true
				b.get(2, put(1))
				b.relist(int64(time.Second))
			default:
				b.get(2, put(1))
			}
			had := len(b.resolved)
			lose(all, a)
			settleAll([]*world{b}, time.Minute)
			if len(b.resolved) != had || len(b.lost) != 1 || b.lost[0].Client != 2 || !errors.Is(b.lost[0].Err, errs.ErrObjectLost) {
				t.Fatalf("%+v, %+v", b.resolved[had:], b.lost)
			}
			if r, known := b.c.objs[put(1)]; known {
				t.Errorf("known still: %+v", r.o)
			}
		})
	}
}

// Who asks for a spilled object that cannot be read any more is told so, and asks the next node.
func TestAnExportThatCannotBeRead(t *testing.T) {
	all := newNodes(t, 3, idleConfig())
	a, b, c := all[0], all[1], all[2]
	for i, w := range all {
		w.join(ids.ClientID(i + 1))
	}
	for i := range 7 {
		a.putSlowly(1, put(i), 3*mib)
	}
	b.tell(put(0), 3*mib, a)
	b.get(2, put(0))
	settleAll(all, time.Second)
	a.broken = fmt.Errorf("a bad disk: %w", spill.ErrCorrupt)
	c.tell(put(0), 3*mib, a, b)
	if o := a.c.objs[put(0)].o; !o.spilled {
		t.Fatal("it is not spilled: this shows nothing")
	} else if o.resident {
		a.c.evict(o)
	}
	c.get(3, put(0))
	settleAll(all, time.Minute)
	if !c.got(put(0)) || len(c.lost)+len(a.c.exports) != 0 {
		t.Fatalf("%+v, %+v, %+v", c.resolved, c.lost, a.c.exports)
	}
}

// An object of a job that is over is not restored for another node: the job's file may go any time.
func TestAnExportThatWaitsEndsWithItsJob(t *testing.T) {
	all := newNodes(t, 1, testConfig(16*mib))
	a := all[0]
	a.nodes.hold = true
	a.join(1)
	for i := range 8 {
		a.putSlowly(1, put(i), 3*mib)
	}
	a.step(Export{To: 9, Token: 1, ID: put(0)})
	if x := a.c.exports[exportKey{9, 1}]; x == nil || x.r.o.resident {
		t.Fatal("the object is to be on disk, and asked for")
	}
	a.step(DropJob{1})
	if len(a.c.exports) != 0 {
		t.Errorf("exports are %v", a.c.exports)
	}
	a.step(ClientGone{1})
	settleAll(all, time.Second)
	if s := a.c.Stats(); len(a.c.over) != 0 || s.Backed != 0 || len(a.c.all()) != 0 {
		t.Errorf("left of the job: %v, %+v", a.c.over, s)
	}
}

// A restore for another node goes on when a client that waits too does not want it any more, and says who waits.
func TestAnExportWaitsOnItsOwn(t *testing.T) {
	all := newNodes(t, 1, idleConfig())
	a := all[0]
	a.nodes.hold = true
	a.join(1)
	for i := range 8 {
		a.putSlowly(1, put(i), 3*mib)
	}
	a.step(Export{To: 9, Token: 1, ID: put(0)})
	a.get(1, put(0))
	a.step(UnpinForGet{Client: 1, ID: put(0)})
	settleAll(all, time.Second)
	if why := a.c.Why(put(0)); len(a.nodes.read) != 1 || !slices.Contains(why, "read by node 9") {
		t.Fatalf("%d are read: %v", len(a.nodes.read), why)
	}
	a.step(Export{To: 9, Token: 2, ID: put(1)})
	a.step(ExportDone{To: 9, Token: 2}) // not wanted any more
	settleAll(all, time.Second)
	if len(a.nodes.read) != 1 || len(a.c.exports) != 1 || a.notes.Len() != 1 {
		t.Errorf("left: %v, %v", a.c.exports, a.notes.List())
	}
}

// A process of another job reads its own copy, which is brought from the other node as well.
func TestAnotherJobReadsWhatIsElsewhere(t *testing.T) {
	all := newNodes(t, 2, testConfig(16*mib))
	a, b := all[0], all[1]
	a.join(1)
	b.joinJob(2, 2)
	a.put(1, put(1), mib)
	b.tell(put(1), mib, a)
	b.get(2, put(1))
	settleAll(all, 0)
	if s := b.c.Stats(); !b.got(put(1)) || s.Foreign != mib || s.Imports != 1 {
		t.Fatalf("%+v, %+v", b.resolved, s)
	}
}

// What does not fit what is here changes nothing.
func TestWhatIsSaidOfOtherBytes(t *testing.T) {
	all := newNodes(t, 2, testConfig(16*mib))
	a := all[0]
	a.join(1)
	a.put(1, put(1), mib)
	a.step(Located{ID: put(1), Attempt: 1, Size: mib, On: []ids.Home{2}}) // another attempt's
	a.step(Located{ID: put(2), Size: mib})                                // nobody has it
	a.step(Pack{Job: 1, Values: []PackValue{{root.Return(1), wire.Value{Data: make([]byte, 100)}}}})
	settleAll(all, 0)
	a.step(Located{ID: root.Return(1), Size: 100, On: []ids.Home{2}}) // a block is kept as a whole
	if s := a.c.Stats(); s.Copies != 0 || s.Objects != 2 || s.ObjectsElsewhere != 0 || a.notes.Len() != 0 {
		t.Errorf("%+v, %v", s, a.notes.List())
	}
	a.step(Export{To: 2, Token: 1, ID: put(1), Attempt: 1})
	if len(a.c.exports) != 0 {
		t.Error("another attempt's bytes are exported")
	}
}

// An owner that says that no other node has an object asks whether it is here.
func TestAStoreSaysWhatItHasNot(t *testing.T) {
	all := newNodes(t, 2, testConfig(4*mib))
	a, b := all[0], all[1]
	a.join(1)
	a.put(1, put(1), mib)
	a.step(Located{ID: put(1), Size: mib})
	b.step(Located{ID: put(1), Size: mib})
	a.step(Located{ID: put(1), Attempt: 2, Size: mib})
	if len(b.gone) != 1 || len(a.gone) != 1 {
		t.Errorf("it is said to be lost %d times where it is not, and %d times where another attempt's is", len(b.gone), len(a.gone))
	}
	b.tell(put(1), mib, a)
	lose(all, a)
	if len(b.gone) != 2 {
		t.Error("nobody is told that the last copy is gone")
	}
}

// An owner that was restarted asks what there is: copies, what is known to be elsewhere, and what is being written.
func TestAStoreListsWhatItKnows(t *testing.T) {
	all := newNodes(t, 2, testConfig(4*mib))
	a, b := all[0], all[1]
	a.join(1)
	b.join(1)
	a.put(1, put(1), mib)
	b.put(1, put(2), mib)
	b.tell(put(1), mib, a)
	b.create(1, put(3), 0, mib, ids.TaskID{})
	b.relist(0)
	b.step(ListObjects{Job: 1, Ask: 7})
	b.step(ListObjects{Job: 2})
	want := []Inventory{{Job: 1, Asked: true, Ask: 7, Objects: []SealedInfo{{ID: put(1), Size: mib, Elsewhere: true}, {ID: put(2), Size: mib}}, Unsealed: []Left{{ID: put(3), Client: 1}}}, {Job: 2, Asked: true}}
	if len(b.invent) != 2 {
		t.Fatalf("%d answers", len(b.invent))
	}
	for i, inv := range b.invent {
		for k := range inv.Objects {
			inv.Objects[k].Meta = nil
		}
		if !reflect.DeepEqual(inv, want[i]) {
			t.Errorf("%+v, want %+v", inv, want[i])
		}
	}
}

// Whatever is made, imported, evicted, freed and lost on three nodes, whoever asks gets what was sealed or is told that it is lost, and at the end
// nobody has anything pinned.
func TestNodesReadOneAnother(t *testing.T) {
	testkit.Check(t, func(rt *rapid.T) {
		cfg := testConfig(8 * mib)
		cfg.ColdFrom = rapid.SampledFrom([]uint64{0, 1, 64 << 10}).Draw(rt, "cold from")
		all := newNodes(t, 3, cfg)
		for i, w := range all {
			w.join(ids.ClientID(10*i + 11))
			w.joinJob(ids.ClientID(10*i+12), 2)
			w.nodes.lossy = rapid.Bool().Draw(rt, "lossy")
		}
		live := slices.Clone(all)
		made := map[ids.ObjectID]bool{}
		asked, closed := map[*world]int{}, map[*world]int{}
		n := 0
		for range rapid.IntRange(5, 60).Draw(rt, "steps") {
			w := rapid.SampledFrom(live).Draw(rt, "node")
			c := ids.ClientID(10*w.nodes.home + 1)
			pick := func() (ids.ObjectID, bool) {
				id := put(rapid.IntRange(1, max(n, 1)).Draw(rt, "object"))
				return id, made[id]
			}
			switch rapid.IntRange(0, 9).Draw(rt, "what") {
			case 0, 1:
				if n++; w.create(c, put(n), 0, uint64(rapid.IntRange(1, 2*mib).Draw(rt, "size")), ids.TaskID{}) == 0 {
					continue
				}
				w.relist(int64(time.Minute))
				m := w.created[reqs]
				if m == nil || m.Err != nil {
					rt.Fatalf("create: %+v; %s", m, w.c.figures(mib))
				}
				w.write(c, 0, m)
				w.seal(c, 0, m, m.Extent.Size)
				made[put(n)] = true
			case 2, 3, 4:
				if id, ok := pick(); ok {
					var on []*world
					var size uint64
					for _, x := range live {
						if o := x.c.objs[id].o; x != w && o != nil {
							size, on = o.size, append(on, x)
						}
					}
					if o := w.c.objs[id].o; o == nil && len(on) > 0 || o != nil && o.size == size {
						w.tell(id, size, on...)
					}
				}
			case 5, 6:
				if id, ok := pick(); ok {
					w.get(c+ids.ClientID(rapid.IntRange(0, 1).Draw(rt, "job")), id)
					asked[w]++
				}
				for ; len(w.resolved)-closed[w] > 2; closed[w]++ { // two views stay open
					if r := w.resolved[closed[w]]; r.Result.Kind == wire.ResultStored {
						w.unpin(w.getter[closed[w]], r.ID, 1)
					}
				}
			case 7:
				if id, ok := pick(); ok {
					for _, x := range live {
						x.step(Free{[]ids.ObjectID{id}})
					}
					delete(made, id)
				}
			case 8:
				w.run(nil)
			case 9:
				if len(live) > 1 && rapid.IntRange(0, 3).Draw(rt, "lost") == 0 {
					lose(live, w)
					live = slices.DeleteFunc(live, func(x *world) bool { return x == w })
				}
			}
		}
		for range 2 * maxTries { // an object, and a copy of it for another job
			settleAll(live, time.Hour) // what fails after that is tried again in the next hour
		}
		for _, w := range live {
			if got := len(w.resolved) + len(w.lost); got != asked[w] {
				rt.Fatalf("node %d: %d answers to %d questions", w.nodes.home, got, asked[w])
			}
			if len(w.c.exports)+len(w.nodes.asked)+len(w.nodes.read) != 0 {
				rt.Fatalf("node %d: left are exports %v, imports %v", w.nodes.home, w.c.exports, w.nodes.asked)
			}
			clear(w.owned)
			for c := range w.c.clients.byID {
				w.step(ClientGone{c})
			}
			if s := w.c.Stats(); s.Pinned != 0 {
				rt.Fatalf("node %d: %+v", w.nodes.home, s)
			}
		}
	})
}
