package owner

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/objectstore"
	"mobula/raylet/owner/record"
	"mobula/raylet/owner/task"
	"mobula/raylet/sched"
	"mobula/wire"
)

// rebuild replaces the core by one made from the log and tells it of its clients.
func (s *script) rebuild(epoch uint64) {
	s.t.Helper()
	s.rebuildWith(Restored{Epoch: epoch})
}

func (s *script) rebuildWith(ev Restored) {
	s.t.Helper()
	c, err := Rebuild(Config{Job: 1}, func(yield func(uint64, []byte) bool) {
		for ck, b := range s.logs {
			if !yield(ck, b) {
				return
			}
		}
	})
	if err != nil {
		s.t.Fatal(err)
	}
	s.c = c
	ev.Clients = []ClientJoined{{Client: driver, Role: wire.RoleDriver}, {Client: worker, Role: wire.RoleWorker}, {Client: worker2, Role: wire.RoleWorker}}
	s.step(ev)
}

func holds(epoch uint64) *wire.Holdings {
	return &wire.Holdings{Component: wire.ComponentOwner, Epoch: epoch}
}

// A rebuilt core asks everyone, does nothing until all have answered, and then goes on: what
// a worker runs is adopted, what none runs is queued, what came meanwhile is not lost.
func TestRebuiltCoreGoesOn(t *testing.T) {
	s := newScript(t, Config{})
	running, queued := s.spec(simple), s.spec(simple)
	s.from(driver, &wire.Submit{Spec: running}, &wire.Submit{Spec: queued})
	l := s.grant(worker)
	x := s.executed(worker)
	put := s.root.Put(1)
	s.from(driver, &wire.PutValue{ID: put, Value: wire.Value{Data: []byte("put")}})

	s.rebuild(7)
	for _, cl := range []ids.ClientID{driver, worker, worker2} {
		if r := sent[*wire.Resync](s, cl); len(r) != 1 || r[0].Epoch != 7 || r[0].Component != wire.ComponentOwner {
			t.Fatalf("client %d is asked %+v", cl, r)
		}
	}
	if o := told[sched.OwnerRestarted](s); len(o) != 1 || o[0].Epoch != 7 {
		t.Fatalf("the scheduler is told %+v", o)
	}
	late := s.spec(simple)
	h := holds(7)
	h.Handles = []ids.ObjectID{running.ID.Return(0), queued.ID.Return(0), put}
	h.Gets = []wire.Get{{ID: running.ID.Return(0), Fetch: true}}
	s.from(driver, h, &wire.Submit{Spec: late})
	s.from(worker2, holds(7))
	if len(s.out) != 0 || !s.c.Gauges().Recovering {
		t.Fatalf("it does not wait for the worker: %+v", s.out)
	}
	h = holds(7)
	h.Tasks = []wire.Attempt{{Task: running.ID, Attempt: x.Attempt, Lease: l}}
	s.from(worker, h)
	if s.state(running) != task.Running || s.state(queued) != task.PendingNode || s.state(late) != task.PendingNode {
		t.Fatalf("states %v %v %v", s.state(running), s.state(queued), s.state(late))
	}
	s.step(FromSched{sched.Granted{Key: sched.ClassKey{Job: 1, Class: s.c.classOf(0, simple).id}, Lease: l, Worker: worker, Epoch: 7}})
	if len(sent[*wire.Exec](s, worker)) != 0 {
		t.Error("the lease that is told again is taken for a new one")
	}
	s.done(worker, l, x, inline("v"))
	if r := sent[*wire.Resolved](s, driver); len(r) != 1 || string(r[0].Result.Value.Data) != "v" {
		t.Errorf("the get of before is answered with %+v", r)
	}
	if r := s.result(put); string(r.Result.Value.Data) != "put" {
		t.Errorf("the put is %+v", r.Result)
	}
}

// What nobody holds any more is freed; what a lost worker ran is run again.
func TestRebuiltCoreDropsAndRepeats(t *testing.T) {
	s := newScript(t, Config{})
	kept := s.makeStored(simple)
	gone := s.makeStored(simple)
	spec := s.submit(simple)
	s.grant(worker)
	s.rebuild(1)
	h := holds(1)
	h.Handles = []ids.ObjectID{kept.ID.Return(0), spec.ID.Return(0)}
	s.from(driver, h)
	s.from(worker2, holds(1))
	s.step(ClientGone{Client: worker})
	if f := told[objectstore.Free](s); len(f) != 1 || len(f[0].IDs) != 1 || f[0].IDs[0] != gone.ID.Return(0) {
		t.Errorf("freed %+v", f)
	}
	if s.state(spec) != task.PendingNode || s.state(kept) != task.Finished {
		t.Errorf("states %v %v", s.state(spec), s.state(kept))
	}
}

func TestAClientThatDoesNotAnswerIsSentAway(t *testing.T) {
	s := newScript(t, Config{})
	spec := s.submit(simple)
	s.rebuild(1)
	h := holds(1)
	h.Handles = []ids.ObjectID{spec.ID.Return(0)}
	s.from(driver, h)
	s.from(worker, holds(1))
	s.pass(10 * time.Second)
	if b := sent[*wire.Bye](s, worker2); len(b) != 1 || b[0].Err.Code != errs.CodeProtocol {
		t.Fatalf("it is told %+v", b)
	}
	if s.c.Gauges().Recovering || s.state(spec) != task.PendingNode {
		t.Error("the others wait for it")
	}
}

// When a task was submitted is in the log, and no two were at the same time: lists have the same order after a restart.
func TestTheTimeOfASubmissionOutlivesTheCore(t *testing.T) {
	s := newScript(t, Config{})
	specs := []*wire.TaskSpec{s.spec(simple), s.spec(simple), s.spec(simple)}
	s.from(driver, &wire.Submit{Spec: specs[0]}, &wire.Submit{Spec: specs[1]}, &wire.Submit{Spec: specs[2]})
	var born []int64
	for _, spec := range specs {
		w, _ := s.c.WhyTask(spec.ID)
		born = append(born, w.Born)
	}
	if born[0] != s.now || born[1] != born[0]+1 || born[2] != born[1]+1 {
		t.Errorf("born at %v, it is %d", born, s.now)
	}
	s.rebuild(1)
	for i, spec := range specs {
		if w, ok := s.c.WhyTask(spec.ID); !ok || w.Born != born[i] {
			t.Errorf("task %d was born at %d, and after the restart at %d", i, born[i], w.Born)
		}
	}
}

// A core that is lost while it waits hands over what it kept back.
func TestHeldEventsOutliveASecondCrash(t *testing.T) {
	s := newScript(t, Config{})
	s.rebuild(1)
	spec := s.spec(simple)
	s.from(driver, &wire.Submit{Spec: spec})
	held, at := s.c.Held()
	if len(held) != 1 || at != -1 {
		t.Fatalf("held %+v, stepping %d", held, at)
	}
	s.rebuild(2)
	for _, ev := range held {
		s.step(ev)
	}
	h := holds(2)
	h.Handles = []ids.ObjectID{spec.ID.Return(0)}
	s.from(driver, h)
	s.from(worker, holds(2))
	s.from(worker2, holds(2))
	if s.state(spec) != task.PendingNode {
		t.Errorf("the task is %v", s.state(spec))
	}
}

// A store that was rebuilt is asked again for what it had been asked, and told what to free.
func TestRestartedStore(t *testing.T) {
	s := newScript(t, Config{})
	a := s.makeStored(simple)
	b := s.submit(simple, wire.Arg{Ref: a.ID.Return(0)})
	s.grant(worker)
	orphan := s.root.Put(9)
	s.step(FromStore{Msg: objectstore.Inventory{Job: 1, Objects: []objectstore.SealedInfo{{ID: a.ID.Return(0), Attempt: 1}, {ID: orphan}}}})
	if p := told[objectstore.PinArgs](s); len(p) != 1 || p[0].Task != b.ID {
		t.Errorf("pins asked again: %+v", p)
	}
	if f := told[objectstore.Free](s); len(f) != 1 || len(f[0].IDs) != 1 || f[0].IDs[0] != orphan {
		t.Errorf("freed: %+v", f)
	}
	if r := sent[*wire.Resync](s, driver); len(r) != 1 {
		t.Fatalf("the driver is asked %+v", r)
	}
	h := holds(0)
	h.Gets = []wire.Get{{ID: a.ID.Return(0), Fetch: true}}
	s.from(driver, h)
	if p := told[objectstore.PinForGet](s); len(p) != 1 || p[0].Client != driver {
		t.Errorf("its get is asked again: %+v", p)
	}
}

// What a store that was rebuilt has and its owner has no use for is freed: of objects that are
// gone, that failed, and of values that the owner has itself and does not know to be packed.
func TestARestartedStoreKeepsNothingThatNobodyFrees(t *testing.T) {
	s := newScript(t, Config{})
	stored := s.makeStored(simple).ID.Return(0)
	pending := s.submit(simple).ID.Return(0)
	inlined, packing := s.root.Put(1), s.root.Put(2)
	s.from(driver, &wire.PutValue{ID: inlined, Value: wire.Value{Data: []byte("x")}}, &wire.PutValue{ID: packing, Value: wire.Value{Data: []byte("y")}})
	s.c.object(packing).flags |= objPacking
	failed := s.submit(simple)
	s.from(driver, &wire.Cancel{Task: failed.ID})
	dropped := s.submit(simple)
	s.from(driver, &wire.Cancel{Task: dropped.ID}, &wire.Release{IDs: []ids.ObjectID{dropped.ID.Return(0)}})
	unknown := s.root.Put(99)
	inv := objectstore.Inventory{Job: 1}
	for _, id := range []ids.ObjectID{stored, pending, inlined, packing, failed.ID.Return(0), dropped.ID.Return(0), unknown} {
		inv.Objects = append(inv.Objects, objectstore.SealedInfo{ID: id, Attempt: 1})
	}
	s.step(FromStore{Msg: inv})
	f := told[objectstore.Free](s)
	want := []ids.ObjectID{inlined, failed.ID.Return(0), dropped.ID.Return(0), unknown}
	if len(f) != 1 || !slices.Equal(f[0].IDs, want) {
		t.Errorf("freed %+v, want %v", f, want)
	}
	if d := told[objectstore.DropAttempt](s); len(d) != 1 || d[0].ID != pending {
		t.Errorf("dropped %+v, want the attempt at what is being made", d)
	}
	s.c.object(packing).flags &^= objPacking
}

// A scheduler that was rebuilt is told every lease and want.
func TestRestartedScheduler(t *testing.T) {
	s := newScript(t, Config{})
	a, la := s.spawn(counter, worker)
	first := s.submit(simple)
	l := s.grant(worker2)
	s.submit(simple)
	s.from(worker2, &wire.Blocked{Task: first.ID, Lease: l})
	s.step(FromSched{sched.Resync{Epoch: 5}})
	h := told[sched.Holdings](s)
	if len(h) != 1 || h[0].Epoch != 5 || len(h[0].Held) != 2 || len(h[0].Wants) != 1 || h[0].Wants[0].Backlog != 1 {
		t.Fatalf("told %+v", h)
	}
	up, bl := h[0].Held[0], h[0].Held[1]
	if up.Lease != la || !up.Up || up.Kind != wire.TaskActorCreate || bl.Lease != l || !bl.Blocked || bl.Up {
		t.Errorf("held %+v %+v", up, bl)
	}
	_ = a
}

// A worker in which a task was abandoned is to end still: a scheduler that is made anew knows its process and its
// other leases, and not that.
func TestARestartedSchedulerDrainsWhoWasDraining(t *testing.T) {
	s := newScript(t, Config{})
	stuck := s.submit(simple)
	s.grant(worker)
	other := s.submit(simple)
	l := s.grant(worker)
	s.from(driver, &wire.Cancel{Task: stuck.ID, Force: true})
	if d := told[sched.DrainWorker](s); len(d) != 1 || d[0].Worker != worker {
		t.Fatalf("the worker is not drained: %+v", d)
	}
	s.step(FromSched{sched.Resync{Epoch: 5}})
	if h := told[sched.Holdings](s); len(h) != 1 || len(h[0].Held) != 1 || h[0].Held[0].Lease != l {
		t.Fatalf("told %+v, where %v runs", h, other.ID)
	}
	if d := told[sched.DrainWorker](s); len(d) != 1 || d[0].Worker != worker || d[0].Err == nil {
		t.Errorf("and of the draining %+v", d)
	}
}

// Credit is given once at the start, and then as messages are worked through.
func TestCredit(t *testing.T) {
	s := newScript(t, Config{CreditWindow: 8000})
	given := int64(0)
	for range 10 {
		spec := s.spec(simple, wire.Arg{Value: wire.Value{Data: make([]byte, 300)}})
		s.from(driver, &wire.Submit{Spec: spec})
		for _, m := range sent[*wire.Credit](s, driver) {
			given += m.Bytes
		}
	}
	if want := 10 * wire.CostOfSpec(s.spec(simple, wire.Arg{Value: wire.Value{Data: make([]byte, 300)}})); given < want-1000 || given > want {
		t.Errorf("%d of %d bytes are given back", given, want)
	}
}

// Options that come over a socket are equal, not the same: they are one class. Classes that
// nothing uses are forgotten before they are too many.
func TestClasses(t *testing.T) {
	s := newScript(t, Config{})
	one, other := *simple, *simple
	other.MaxRetries = 9 // no matter of the scheduler
	if s.c.classOf(0, &one) != s.c.classOf(0, &other) {
		t.Error("equal options are two classes")
	}
	if s.c.classOf(0, &one) == s.c.classOf(wire.TaskActorCreate, &one) {
		t.Error("tasks and creations share a class")
	}
	used := s.submit(simple)
	for i := range 3 * maxClasses {
		s.c.classOf(0, &wire.TaskOptions{Func: fmt.Sprint("f", i)})
	}
	if n := len(s.c.classes.byID); n > maxClasses {
		t.Errorf("%d classes are kept", n)
	}
	if k := s.c.classOf(0, simple); k != s.c.tasks.task(used.ID).class {
		t.Error("a class in use was forgotten")
	}
}

// A parent that is retried names its children again and finds them.
func TestAParentThatRunsAgainFindsItsChildren(t *testing.T) {
	s := newScript(t, Config{})
	parent := s.submit(simple)
	l := s.grant(worker)
	child := &wire.TaskSpec{ID: ids.Derive(parent.ID, 1), Parent: parent.ID, Opts: &wire.TaskOptions{Func: "child", NumReturns: 1}}
	s.from(worker, &wire.Submit{Spec: child})
	lc := s.grant(worker2)
	x := s.executed(worker2)
	s.kill(worker, errs.CodeWorkerCrashed, 0, l)
	s.done(worker2, lc, x, inline("once"))
	if s.state(child) != task.None {
		t.Fatalf("without a holder the child is %v", s.state(child))
	}
	s.grant(worker2) // the parent again
	s.from(worker2, &wire.Submit{Spec: child}, &wire.Submit{Spec: child})
	if s.c.stats.Submitted != 3 {
		t.Errorf("%d tasks are taken, want the parent, the child and the child again", s.c.stats.Submitted)
	}
}

// A live record of the log is moved when its owner says where the new position goes; a
// tombstone goes when nothing before it is left.
func TestLogUpkeep(t *testing.T) {
	s := newScript(t, Config{CreditWindow: 1 << 20}) // less than so many messages have
	spec := s.submit(simple)
	cookie := s.c.tasks.task(spec.ID).cookie
	at := s.c.Relocate(cookie, s.logs[cookie])
	if at == nil || *at != cookie {
		t.Fatal("a live record is not known")
	}
	*at = 1000
	if s.c.tasks.task(spec.ID).cookie != 1000 || s.c.Relocate(cookie, s.logs[cookie]) != nil {
		t.Error("its old place is still live")
	}
	s.from(driver, &wire.Cancel{Task: spec.ID}, &wire.Release{IDs: []ids.ObjectID{spec.ID.Return(0)}})
	tomb := s.cookie
	if got := s.lapsed(); len(got) != 0 {
		t.Errorf("%v may go while the driver may submit its task again", got)
	}
	at = s.c.Relocate(tomb, s.logs[tomb])
	if at == nil {
		t.Fatal("a forget record is not known that is needed")
	}
	*at = 2000
	s.trust = true
	var got []uint64
	for n := 0; len(got) == 0 && n < wire.Replayed; n++ {
		s.from(driver, &wire.PutValue{ID: s.root.Put(1)})
		got = s.lapsed()
	}
	if !slices.Equal(got, []uint64{2000}) {
		t.Errorf("%v may go, want what was moved to 2000", got)
	}
	if s.c.Relocate(2000, s.logs[tomb]) != nil {
		t.Error("it is moved again")
	}
}

// lapsed gives the records that the last step needs no longer than those before them.
func (s *script) lapsed() (out []uint64) {
	for _, e := range s.out {
		if e.Kind == LogLapse {
			for _, ck := range *e.Cookies {
				out = append(out, *ck)
			}
		}
	}
	return out
}

// What only a worker made no driver sends again, nor does anybody when the last driver is gone.
func TestATombstoneOfWhatNobodySendsAgainLapses(t *testing.T) {
	s := newScript(t, Config{})
	parent := s.submit(&wire.TaskOptions{Func: "keeper", NumReturns: 1})
	l := s.grant(worker)
	x := s.executed(worker)
	put := parent.ID.Put(1)
	s.from(worker, &wire.PutValue{ID: put}, &wire.Release{IDs: []ids.ObjectID{put}})
	if got := s.lapsed(); !slices.Equal(got, []uint64{s.cookie}) {
		t.Errorf("%v may go, want %d, of a worker's put", got, s.cookie)
	}
	a := s.create(&wire.TaskOptions{Func: "detached", NumReturns: 1, ActorName: "d", Detached: true}) // so that the job stays
	s.step(FromDirectory{NameClaimed{Actor: ids.ActorID(a.ID)}})
	s.done(worker, l, x, inline("x"))
	s.from(driver, &wire.Release{IDs: []ids.ObjectID{parent.ID.Return(0)}})
	tomb := s.cookie
	if got := s.lapsed(); len(got) != 0 {
		t.Errorf("%v may go while the driver may submit its task again", got)
	}
	s.step(ClientGone{Client: driver})
	if got := s.lapsed(); !slices.Contains(got, tomb) {
		t.Errorf("%v may go, want %d: there is no driver", got, tomb)
	}
}

// A damaged record names its place.
func TestRebuildNamesTheRecordItCannotRead(t *testing.T) {
	_, err := Rebuild(Config{Job: 4}, func(yield func(uint64, []byte) bool) { yield(77, []byte{200, 1}) })
	if !errors.Is(err, record.ErrBadRecord) || err.Error() != "record at 77 of job 4: malformed record of the owner's log: kind 200: it is unknown" {
		t.Errorf("%v", err)
	}
}

// A stream that nobody reads any more may come back with the log, or with its submission that is said again: it goes with its
// items. One that somebody reads stays.
func TestARebuiltCoreEndsStreamsThatNobodyReads(t *testing.T) {
	s := newScript(t, Config{})
	var specs []*wire.TaskSpec
	var l ids.LeaseID
	for range 2 {
		spec := s.submit(&wire.TaskOptions{Func: "stream", NumReturns: wire.Streaming})
		if l == 0 {
			l = s.grant(worker)
		}
		x := s.executed(worker)
		s.from(worker, &wire.StreamItem{Task: spec.ID, Attempt: x.Attempt, Index: 0, Result: inline("a")})
		s.from(worker, &wire.Done{Task: spec.ID, Attempt: x.Attempt, Lease: l, Items: 1})
		specs = append(specs, spec)
	}
	read, left := specs[0], specs[1]
	s.rebuild(7)
	h := holds(7)
	h.Handles = []ids.ObjectID{read.ID.Stream()}
	s.from(driver, &wire.Submit{Spec: left}, h)
	s.from(worker, holds(7))
	s.from(worker2, holds(7))
	if s.c.tasks.task(read.ID) == nil || s.c.tasks.task(left.ID) != nil {
		t.Errorf("of the streams there are %v and %v", s.c.tasks.task(read.ID), s.c.tasks.task(left.ID))
	}
	s.from(driver, &wire.StreamNext{Task: read.ID})
	if got := sent[*wire.StreamItem](s, driver); len(got) != 1 || string(got[0].Result.Value.Data) != "a" {
		t.Errorf("its reader is given %+v", got)
	}
}

// A deadline that passes while a rebuilt core waits for its clients is not asked for again and again.
func TestWhatIsDueWaitsForTheClients(t *testing.T) {
	s := newScript(t, Config{})
	spec := s.spec(simple)
	spec.Deadline = s.now + int64(time.Second)
	s.from(driver, &wire.Submit{Spec: spec})
	s.now += int64(2 * time.Second)
	s.rebuild(7)
	after := func() (n []int64) {
		for _, e := range s.out {
			if e.Kind == After {
				n = append(n, e.N)
			}
		}
		return n
	}
	if a := after(); len(a) != 1 || a[0] != int64(10*time.Second) {
		t.Errorf("it asks for %v", a)
	}
	h := holds(7)
	h.Handles = []ids.ObjectID{spec.ID.Return(0)}
	s.from(driver, h)
	s.from(worker, holds(7))
	s.from(worker2, holds(7))
	if a := after(); len(a) != 1 || a[0] > int64(time.Millisecond) {
		t.Errorf("when it goes on it asks for %v", a)
	}
	s.step(Timer{})
	s.wantError(spec.ID.Return(0), errs.CodeDeadline)
}

// What the core before had freed, and not told the store of any node, is freed by the next one: its log has nothing of it.
func TestRebuiltCoreFreesWhatItsLogHasForgotten(t *testing.T) {
	s := newScript(t, Config{})
	s.rebuild(1)
	s.from(driver, holds(1))
	s.from(worker, holds(1))
	s.from(worker2, holds(1))
	if l := told[objectstore.ListObjects](s); len(l) != 1 || l[0].Job != 1 {
		t.Fatalf("the store is asked %+v", l)
	}
	left := s.root.Put(1)
	s.step(FromStore{Msg: objectstore.Inventory{Job: 1, Asked: true, Objects: []objectstore.SealedInfo{{ID: left, Size: 8}}}})
	if f := told[objectstore.Free](s); len(f) != 1 || !slices.Equal(f[0].IDs, []ids.ObjectID{left}) {
		t.Errorf("freed %+v", f)
	}
}

// What the log has on a node where the job is not any more may be in its own node's store as well: it is asked for there, and made again when it is not.
func TestRebuiltCoreAsksAtHomeForWhatADeadNodeHad(t *testing.T) {
	const there = ids.ClientID(1<<40 | 5)
	s := newScript(t, Config{})
	if there.Home() == s.c.home() {
		t.Fatal("it is on the job's own node")
	}
	s.step(ClientJoined{Client: there, Role: wire.RoleWorker})
	spec := s.submit(simple)
	l := s.grant(there)
	x := s.executed(there)
	id := spec.ID.Return(0)
	s.from(there, &wire.Seal{ID: id, Attempt: x.Attempt, Size: 8},
		&wire.Done{Task: spec.ID, Attempt: x.Attempt, Lease: l, Results: []wire.Result{stored()}, Times: wire.Times{Started: 1, Ended: 9e6}})
	for epoch := range uint64(2) { // the second core has it from the log of the first
		s.rebuild(epoch + 1)
		h := holds(epoch + 1)
		h.Handles = []ids.ObjectID{id}
		s.from(driver, h)
		s.from(worker, holds(epoch+1))
		s.from(worker2, holds(epoch+1))
	}
	s.from(driver, &wire.Get{ID: id, Fetch: true})
	if p := told[objectstore.PinForGet](s); len(p) != 1 || s.state(spec) != task.Finished {
		t.Fatalf("the store is asked %+v, the task is %v", p, s.state(spec))
	}
	s.step(FromStore{Msg: objectstore.Lost{ID: id, Client: driver, Err: errs.New(errs.CodeObjectLost, "it is not here")}})
	if s.state(spec) != task.PendingNode {
		t.Errorf("the task is %v", s.state(spec))
	}
}

// A worker says which of its tasks have given their CPU back, and which ask for it: the scheduler may have lost that too, and is told again.
func TestRebuiltCoreKnowsWhichTasksWait(t *testing.T) {
	for _, asks := range []bool{false, true} {
		s := newScript(t, Config{})
		spec := s.submit(simple)
		l := s.grant(worker)
		x := s.executed(worker)
		s.rebuild(1)
		h := holds(1)
		h.Handles = []ids.ObjectID{spec.ID.Return(0)}
		s.from(driver, h)
		s.from(worker2, holds(1))
		h = holds(1)
		h.Tasks = []wire.Attempt{{Task: spec.ID, Attempt: x.Attempt, Lease: l, Blocked: true, Asks: asks}}
		s.from(worker, h, &wire.Unblocked{Task: spec.ID, Lease: l}) // sent before, or after
		if b, u := told[sched.BlockCPU](s), told[sched.UnblockCPU](s); len(b) != 1 || b[0].Lease != l || len(u) != 1 {
			t.Errorf("it asks: %v; the scheduler is told %v and %v", asks, b, u)
		}
		if s.state(spec) != task.RunningInGet {
			t.Errorf("it asks: %v; the task is %v", asks, s.state(spec))
		}
		s.step(FromSched{sched.Resync{Epoch: 9}})
		if h := told[sched.Holdings](s); len(h) != 1 || h[0].Restarted != 1 || len(h[0].Held) != 1 || !h[0].Held[0].Blocked || h[0].Held[0].Ask == (sched.Ask{}) {
			t.Errorf("it asks: %v; the next scheduler is told %+v", asks, h)
		}
		s.step(FromSched{sched.Resumed{Lease: l, Ask: sched.Ask{Nth: 1}}}) // what the core before asked: its CPU was given back since
		if r := sent[*wire.Resume](s, worker); len(r) != 0 || s.state(spec) != task.RunningInGet {
			t.Errorf("it asks: %v; on an old answer it is told %v, the task is %v", asks, r, s.state(spec))
		}
		s.resumed(l)
		if r := sent[*wire.Resume](s, worker); len(r) != 1 || s.state(spec) != task.Running {
			t.Errorf("it asks: %v; it is told %v, the task is %v", asks, r, s.state(spec))
		}
	}
}

// A node may end one life and begin another while a rebuilt core waits for its clients: the workers of the second are not those that are gone.
func TestRebuiltCoreTellsTheLivesOfANodeApart(t *testing.T) {
	const before, after = ids.ClientID(1<<40 | 5), ids.ClientID(1<<40 | 6)
	s := newScript(t, Config{})
	s.rebuild(1)
	s.step(ClientJoined{Client: before, Role: wire.RoleWorker})
	s.step(NodeGone{Node: before.Home(), Err: errs.New(errs.CodeWorkerCrashed, "it was started again")})
	s.step(ClientJoined{Client: after, Role: wire.RoleWorker})
	for _, cl := range []ids.ClientID{driver, worker, worker2} {
		s.from(cl, holds(1))
	}
	if cl := s.c.clients.client(after); cl == nil || cl.gone || !cl.joined {
		t.Errorf("the worker of the second life is %+v", cl)
	}
	if cl := s.c.clients.client(before); cl != nil && !cl.gone {
		t.Errorf("the worker of the first life is %+v", cl)
	}
}

// A log that could not take some records before the node was killed has no result, or item, of a task that it says has ended. Whoever asks for that gets an error: it
// neither waits for good nor takes a stream for shorter than it was.
func TestWhatTheLogCouldNotTakeIsAnError(t *testing.T) {
	s := newScript(t, Config{})
	spec := s.submit(&wire.TaskOptions{Func: "two", NumReturns: 2})
	l := s.grant(worker)
	s.done(worker, l, s.executed(worker), inline("a"), inline("b"))
	stream := s.submit(&wire.TaskOptions{Func: "items", NumReturns: wire.Streaming})
	l = s.grant(worker)
	x := s.executed(worker)
	for i := range uint32(2) {
		s.from(worker, &wire.StreamItem{Task: stream.ID, Attempt: x.Attempt, Index: i, Result: inline("x")})
	}
	s.from(worker, &wire.Done{Task: stream.ID, Attempt: x.Attempt, Lease: l, Items: 2})
	for ck, b := range s.logs {
		r, seq, err := record.Parse(b)
		if err != nil {
			t.Fatal(err)
		}
		switch r := r.(type) {
		case *record.Done:
			if r.Done.Task == spec.ID {
				r.Done.Results[1] = wire.Result{}
				s.logs[ck] = record.AppendDone(nil, seq, &r.Done, task.Finished)
			}
		case *record.Object:
			if r.ID == stream.ID.Return(1) {
				delete(s.logs, ck)
			}
		}
	}
	s.rebuild(7)
	h := holds(7)
	h.Handles = append(h.Handles, spec.ID.Return(0), spec.ID.Return(1), stream.ID.Stream(), stream.ID.Return(0))
	s.from(driver, h)
	s.from(worker, holds(7))
	s.from(worker2, holds(7))
	s.wantError(spec.ID.Return(1), errs.CodeObjectLost)
	if r := s.result(spec.ID.Return(0)); string(r.Result.Value.Data) != "a" {
		t.Errorf("the other result is %+v", r.Result)
	}
	s.from(driver, &wire.StreamNext{Task: stream.ID, Index: 1, Leaves: true})
	if m := sent[*wire.StreamItem](s, driver); len(m) != 1 || m[0].Result.Err == nil || m[0].Result.Err.Code != errs.CodeObjectLost {
		t.Errorf("the second item is %+v", m)
	}
	s.from(driver, &wire.StreamNext{Task: stream.ID, Index: 2, Leaves: true})
	if m := sent[*wire.StreamItem](s, driver); len(m) != 1 || m[0].Result.Kind != wire.ResultNone {
		t.Errorf("the end is %+v", m)
	}
}
