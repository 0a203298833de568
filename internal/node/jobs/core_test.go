package jobs

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	"mobula/gcs/directory"
	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/objectstore"
	"mobula/raylet/owner"
	"mobula/raylet/pool"
	"mobula/wire"
)

const (
	mine  ids.JobID    = 1
	other ids.JobID    = 2
	boss  ids.ClientID = 5 // driver of mine
	hand  ids.ClientID = 6 // worker of mine
)

// script steps a core and compares effects.
type script struct {
	t *testing.T
	c *Core
}

func begin(t *testing.T) script { return script{t, New("n1")} }

// step gives the effects of one event. They are copied: the core uses the slice again.
func (s script) step(ev Event) []Effect { return append([]Effect(nil), s.c.Step(0, ev)...) }

// want steps an event that must lead to these effects.
func (s script) want(ev Event, want ...Effect) {
	s.t.Helper()
	if got := s.step(ev); len(got)+len(want) > 0 && !reflect.DeepEqual(got, want) {
		s.t.Fatalf("%T asks for\n%+v\nwant\n%+v", ev, got, want)
	}
}

// refused steps an event whose ask is to be refused with an error that says so.
func (s script) refused(ev Event, code error, says string) {
	s.t.Helper()
	got := s.step(ev)
	if len(got) != 1 {
		s.t.Fatalf("%T asks for %+v", ev, got)
	}
	a, ok := got[0].(Answer)
	if !ok || a.Ask != AskOf(ev) || a.Err == nil || !errors.Is(a.Err, code) || !strings.Contains(a.Err.Error(), says) {
		s.t.Errorf("%T is answered %+v, want %v that says %q", ev, got[0], code, says)
	}
}

func driver(nth int) Client {
	return Client{ID: boss, Role: wire.RoleDriver, Job: mine, Nth: nth, Apart: true}
}

func joined(id ids.ClientID, role wire.Role, guest bool) owner.ClientJoined {
	return owner.ClientJoined{Client: id, Role: role, Guest: guest}
}

// running is a node with two jobs, of which one has a driver and a worker.
func running(t *testing.T) script {
	s := begin(t)
	s.want(Began{Ask: 1, Job: mine}, ToDirectory{directory.JobBegan{Job: mine}}, Own{Job: mine}, Answer{Ask: 1})
	s.want(Join{Ask: 2, Client: driver(0)}, LetIn{Ask: 2, Client: boss, Job: mine}, Introduce{mine, joined(boss, wire.RoleDriver, false)}, Answer{Ask: 2})
	started := pool.JobStarted{Job: mine, System: 9}
	s.want(Start{3, started}, StartJob{3, started})
	s.want(Arrived{Ask: 4, Client: hand})
	s.want(Admit{Ask: 5, Client: hand, Job: mine}, LetIn{Ask: 4, Client: hand, Job: mine}, Introduce{mine, joined(hand, wire.RoleWorker, false)}, Answer{Ask: 4}, Answer{Ask: 5})
	s.step(Began{Job: other})
	return s
}

// A job begins with its driver; the raylet is told of it once.
func TestAJobBegins(t *testing.T) {
	s := running(t)
	s.want(Start{6, pool.JobStarted{Job: mine}}, Answer{Ask: 6})
	s.refused(Start{7, pool.JobStarted{Job: 99}}, errs.ErrOwnerDied, "job 99 has ended")
	s.refused(Join{Ask: 8, Client: Client{ID: 7, Role: wire.RoleWorker, Job: 99}}, errs.ErrOwnerDied, "job 99 has ended")
}

// Everyone who waits for something of a client hears, once, that it is gone: those of its owners that knew it.
func TestAClientIsGone(t *testing.T) {
	s := running(t)
	s.want(Guest{Ask: 6, Client: hand, Job: other}, Introduce{other, joined(hand, wire.RoleWorker, true)}, Answer{Ask: 6})
	s.want(Guest{Ask: 7, Client: hand, Job: other}, Answer{Ask: 7}) // it knows it
	why := errs.New(errs.CodeDisconnected, "it hung up")
	s.want(Gone{Client: hand, Err: why}, TellGone{hand, []ids.JobID{mine, other}, why}, WorkerGone{hand})
	s.want(Gone{Client: hand, Err: why})
	s.want(Unread{Client: hand}, ToStore{objectstore.ClientGone{Client: hand}})
	s.want(Guest{Ask: 8, Client: hand, Job: other}, Answer{Ask: 8}) // it is nobody's any more
	s.want(Gone{Client: boss, Err: why}, ForgetDriver{mine}, TellGone{boss, []ids.JobID{mine}, why})
}

// A job that is over leaves nothing: in this order, and with a word to a driver that came back too late and to the other owners.
func TestAJobIsOver(t *testing.T) {
	s := running(t)
	s.want(Guest{Ask: 6, Client: hand, Job: other}, Introduce{other, joined(hand, wire.RoleWorker, true)}, Answer{Ask: 6})
	s.step(Cut{mine, errs.New(errs.CodeProtocol, "frame 7 says nothing")})
	got := s.step(Over{Job: mine})
	told, ok := got[1].(TellOver)
	if !ok || told.Client != boss || !errors.Is(told.Err, errs.ErrOwnerDied) || !strings.Contains(told.Err.Error(), "had cut its driver off: protocol violation: frame 7") {
		t.Errorf("the driver is told %+v", got[1])
	}
	want := []Effect{
		Remove{mine}, told, ToRaylet{pool.JobEnded{Job: mine}}, EndProcesses{mine}, ToStore{objectstore.DropJob{Job: mine}}, ToDirectory{directory.JobEnded{Job: mine}},
		ToOwner{other, owner.FromOwner{Job: mine, Msg: owner.JobGone{}}}, CleanUp{Job: mine, Unmap: true},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got\n%+v\nwant\n%+v", got, want)
	}
	want[len(want)-1] = CleanUp{Job: mine}
	s.want(Over{Job: mine}, want...) // a core before this one may have removed it, and no more
	if out := s.step(Missed{boss, mine}); len(out) != 1 || !strings.Contains(out[0].(TellOver).Err.Error(), "frame 7") {
		t.Errorf("who sends it something is told %+v", out)
	}
	s.want(Missed{boss, other})
	s.want(Gone{Client: hand}, TellGone{Client: hand, Jobs: []ids.JobID{other}}, WorkerGone{hand})
	s.want(Gone{Client: boss}, TellGone{Client: boss, Jobs: []ids.JobID{}}) // there is no file any more in which to forget it
	s.refused(Return{Ask: 9, Job: mine, Client: boss, Nth: 1, Proved: true}, errs.ErrOwnerDied, "not known to node n1 any more: the node had cut its driver off")
	s.refused(Return{Ask: 9, Job: 98, Client: boss, Nth: 1, Lost: ": it was set aside"}, errs.ErrOwnerDied, "not known to node n1 any more: it was set aside")
}

// What a driver in this process has mapped stays when its job is over: it may read that yet.
func TestWhatADriverOfThisProcessMapsStays(t *testing.T) {
	s := begin(t)
	s.step(Began{Job: mine, Here: true})
	got := s.step(Over{Job: mine})
	if last := got[len(got)-1]; last != (CleanUp{Job: mine}) {
		t.Errorf("it ends with %+v", last)
	}
}

// A driver whose connection broke, while its node lived, finds that its job has ended with it: when the end of that connection is known, and ever after.
func TestADriverThatWasCutOffDoesNotComeBack(t *testing.T) {
	s := running(t)
	got := s.step(Return{Ask: 10, Job: mine, Client: boss, Nth: 1, Proved: true})
	if len(got) != 1 || got[0].(Dismiss).Client != boss || !errors.Is(got[0].(Dismiss).Err, errs.ErrShutdown) {
		t.Fatalf("its session before: %+v", got)
	}
	got = s.step(Gone{Client: boss, Err: errAgain()})
	a, ok := got[1].(Answer)
	if len(got) != 3 || got[0] != (ForgetDriver{mine}) || !ok || a.Ask != 10 || !errors.Is(a.Err, errs.ErrOwnerDied) || got[2].(TellGone).Client != boss {
		t.Fatalf("that session is over: %+v", got)
	}
	s.refused(Return{Ask: 11, Job: mine, Client: boss, Nth: 2, Proved: true}, errs.ErrOwnerDied, "its driver was gone")
	s = begin(t)
	s.step(Rebuild{Jobs: []Job{{ID: mine, Left: true}}})
	s.refused(Return{Ask: 11, Job: mine, Client: boss, Nth: 2, Proved: true}, errs.ErrOwnerDied, "its driver was gone")
}

// What is said of a session that nobody has any more is not said of the one that has followed.
func TestTheEndOfAnEarlierSession(t *testing.T) {
	s := restored(t)
	s.step(Return{Ask: 10, Job: mine, Client: boss, Nth: 1, Proved: true})
	s.step(Join{Ask: 11, Client: driver(1)})
	s.want(Gone{Client: boss, Nth: 0})
	s.want(Unread{Client: boss, Nth: 0})
	s.want(Gone{Client: boss, Nth: 1}, ForgetDriver{mine}, TellGone{Client: boss, Jobs: []ids.JobID{mine}})
	s.want(Unread{Client: boss, Nth: 1}, ToStore{objectstore.ClientGone{Client: boss}})
}

// Whoever cannot prove that the job is its own is refused, and the driver's session stays.
func TestOnlyTheDriverComesBack(t *testing.T) {
	s := running(t)
	s.refused(Return{Ask: 10, Job: mine, Client: boss, Nth: 1}, errs.ErrPermission, "does not own job 1")
	s.want(Gone{Client: boss}, ForgetDriver{mine}, TellGone{Client: boss, Jobs: []ids.JobID{mine}})
}

// Returns of one driver take turns: each is let in when the one before has come to nothing, whichever has the higher number.
func TestReturnsTakeTurns(t *testing.T) {
	s := restored(t)
	s.want(Return{Ask: 10, Job: mine, Client: boss, Nth: 2, Proved: true}, Answer{Ask: 10})
	s.want(Return{Ask: 11, Job: mine, Client: boss, Nth: 1, Proved: true})
	s.want(Return{Ask: 12, Job: mine, Client: boss, Nth: 3, Proved: true})
	s.want(Return{Ask: 12, Job: mine, Client: boss, Nth: 3, Proved: true})
	s.want(Withdrawn{Job: mine, Nth: 2}, Answer{Ask: 11})
	s.want(Withdrawn{Job: mine, Nth: 1}, Answer{Ask: 12})
	s.want(Withdrawn{Job: mine, Nth: 1})
	s.step(Join{Ask: 13, Client: driver(3)})
	s.refused(Join{Ask: 14, Client: driver(2)}, errs.ErrShutdown, "connected again")
}

// A driver that waits to be let back to a job that ends meanwhile is told so.
func TestAJobEndsWhileItsDriverComesBack(t *testing.T) {
	s := running(t)
	s.step(Return{Ask: 10, Job: mine, Client: boss, Nth: 1, Proved: true})
	got := s.step(Over{Job: mine})
	a, ok := got[len(got)-2].(Answer)
	if !ok || a.Ask != 10 || !errors.Is(a.Err, errs.ErrOwnerDied) {
		t.Errorf("it is told %+v", got)
	}
	s = restored(t)
	s.want(Return{Ask: 11, Job: mine, Client: boss, Nth: 1, Proved: true}, Answer{Ask: 11})
	s.step(Over{Job: mine})
	s.refused(Join{Ask: 12, Client: driver(1)}, errs.ErrOwnerDied, "job 1 has ended")
}

func restored(t *testing.T) script {
	s := begin(t)
	s.want(Restored{Ask: 1, Job: mine}, ToDirectory{directory.JobBegan{Job: mine}}, Own{Job: mine}, Answer{Ask: 1})
	s.step(Start{2, pool.JobStarted{Job: mine}})
	return s
}

// A restored job goes on when its driver is there, and knows it by then.
func TestARestoredJobGoesOnWithItsDriver(t *testing.T) {
	s := restored(t)
	s.want(Join{Ask: 3, Client: Client{ID: 8, Role: wire.RoleWorker, Job: mine}}, LetIn{3, 8, mine}, Introduce{mine, joined(8, wire.RoleWorker, false)}, Answer{Ask: 3}) // an executor
	s.want(Return{Ask: 4, Job: mine, Client: boss, Nth: 1, Proved: true}, Answer{Ask: 4})
	s.want(Join{Ask: 5, Client: driver(1)}, LetIn{5, boss, mine}, Introduce{mine, joined(boss, wire.RoleDriver, false)}, Resume{Job: mine}, Answer{Ask: 5})
	s.want(Alone{mine}) // which it is not
	s.step(Gone{Client: boss, Nth: 1})
	s.refused(Return{Ask: 6, Job: mine, Client: boss, Nth: 2, Proved: true}, errs.ErrOwnerDied, "its driver was gone") // as any driver
}

// One whose driver does not come goes on without, for good.
func TestARestoredJobGoesOnWithoutItsDriver(t *testing.T) {
	s := restored(t)
	s.want(Alone{mine}, Resume{Job: mine, Orphan: true})
	s.want(Alone{mine})
	s.refused(Return{Ask: 4, Job: mine, Client: boss, Nth: 1, Proved: true}, errs.ErrOwnerDied, "went on without its driver when node n1 started again")
	s.want(Alone{99})
}

// A driver that is on its way when its time is up is waited for, until it is there or gives up.
func TestADriverThatComesInTheLastMoment(t *testing.T) {
	s := restored(t)
	s.step(Return{Ask: 4, Job: mine, Client: boss, Nth: 1, Proved: true})
	s.want(Alone{mine})
	s.want(Join{Ask: 5, Client: driver(1)}, LetIn{5, boss, mine}, Introduce{mine, joined(boss, wire.RoleDriver, false)}, Resume{Job: mine}, Answer{Ask: 5})

	s = restored(t)
	s.step(Return{Ask: 4, Job: mine, Client: boss, Nth: 1, Proved: true})
	s.want(Alone{mine})
	s.want(Withdrawn{Job: mine, Nth: 1}, Resume{Job: mine, Orphan: true})
}

// The store is there before the owners of an earlier life's jobs: what it found waits for them, before anything else, and what is nobody's is dropped.
func TestWhatTheStoreFoundWaitsForItsOwner(t *testing.T) {
	s := begin(t)
	found := func(id ids.JobID) objectstore.Inventory {
		return objectstore.Inventory{Job: id, Objects: []objectstore.SealedInfo{{Size: uint64(id)}}}
	}
	for _, id := range []ids.JobID{3, mine, 4} {
		s.want(Found{found(id)})
	}
	s.want(Restored{Ask: 1, Job: mine}, ToDirectory{directory.JobBegan{Job: mine}}, Own{mine, owner.FromStore{Msg: found(mine)}}, Answer{Ask: 1})
	s.want(Found{found(mine)}, ToOwner{mine, owner.FromStore{Msg: found(mine)}})
	s.want(AllRestored{Ask: 2, Names: true}, ToDirectory{directory.Reconcile{}},
		ToStore{objectstore.DropJob{Job: 3}}, ToStore{objectstore.DropJob{Job: 4}}, Settled{}, Answer{Ask: 2})
	s.want(Found{objectstore.Inventory{Job: 5}})
	s.want(Found{found(5)}, ToStore{objectstore.DropJob{Job: 5}}) // the store was told, and lost before it had dropped all
	s.want(Found{objectstore.Inventory{Job: 5, Asked: true, Left: []objectstore.Left{{}}}}, ToStore{objectstore.DropJob{Job: 5}})
	s.want(AllRestored{}, Settled{})
}

// A worker that connects is let in when the pool has said so, once, and not if it has given up.
func TestAWorkerArrives(t *testing.T) {
	s := running(t)
	none := errs.New(errs.CodePermission, "nobody started it")
	s.want(Arrived{Ask: 10, Client: 7})
	s.want(Refuse{7, none}, Answer{10, none})
	s.want(Refuse{7, none})

	late := errs.New(errs.CodeRuntimeSetup, "no answer")
	s.want(Arrived{Ask: 11, Client: 8})
	s.want(GaveUp{8, late}, Answer{11, late})
	s.want(Admit{Ask: 12, Client: 8, Job: mine}, ToRaylet{pool.Disconnected{Client: 8}}, Answer{Ask: 12})

	s.want(Arrived{Ask: 13, Client: 9})
	s.step(Admit{Ask: 14, Client: 9, Job: mine})
	s.want(GaveUp{9, late})
	s.want(Refuse{9, none}, Expel{9, none})
}

// A worker whose job has ended when it arrives is let in: the pool ends it, and nobody else knows it.
func TestAWorkerOfAJobThatIsOver(t *testing.T) {
	s := running(t)
	s.step(Arrived{Ask: 10, Client: 7})
	s.step(Over{Job: mine})
	s.want(Admit{Ask: 11, Client: 7, Job: mine}, LetIn{10, 7, mine}, Answer{Ask: 10}, Answer{Ask: 11})
	s.want(Gone{Client: 7}, TellGone{Client: 7}, WorkerGone{7})
}

// A new core knows what the one before knew from what the shell has, and answers whoever waits.
func TestRebuild(t *testing.T) {
	s := begin(t)
	const third = ids.JobID(3)
	const driver3 = ids.ClientID(30)
	var got []Effect
	for _, ev := range []Event{Rebuild{
		Jobs:    []Job{{ID: mine, Started: true}, {ID: other, Waits: true, Alone: true}, {ID: third, Waits: true, Alone: true}},
		Clients: []Client{{ID: boss, Role: wire.RoleDriver, Job: mine, Nth: 2, Apart: true, Knows: []ids.JobID{mine}}},
		Found:   []Found{{objectstore.Inventory{Job: mine}}, {objectstore.Inventory{Job: 9}}},
	}, Return{Ask: 4, Job: mine, Client: boss, Nth: 3, Proved: true}, Return{Ask: 5, Job: third, Client: driver3, Nth: 4, Proved: true}, Arrived{Ask: 6, Client: hand}, Rebuilt{}} {
		got = append(got, slices.Clone(s.step(ev))...)
	}
	if d, ok := got[1].(Dismiss); !ok || d.Client != boss {
		t.Fatalf("the session that the driver has left: %+v", got)
	}
	want := []Effect{ToOwner{mine, owner.FromStore{Msg: objectstore.Inventory{Job: mine}}}, got[1], Answer{Ask: 5}, Resume{Job: other, Orphan: true}}
	if !reflect.DeepEqual(got, want) {
		t.Fatalf("got\n%+v\nwant\n%+v", got, want)
	}
	s.want(Start{7, pool.JobStarted{Job: mine}}, Answer{Ask: 7})
	s.want(Unread{Client: boss, Nth: 1}) // its pins are the later session's
	s.want(Gone{Client: boss, Nth: 2}, ForgetDriver{mine}, Answer{4, s.c.errOver(mine)}, TellGone{Client: boss, Jobs: []ids.JobID{mine}})
	s.want(Admit{Ask: 8, Client: hand, Job: mine}, LetIn{6, hand, mine}, Introduce{mine, joined(hand, wire.RoleWorker, false)}, Answer{Ask: 6}, Answer{Ask: 8})
	s.want(AllRestored{Ask: 9}, ToStore{objectstore.DropJob{Job: 9}}, Settled{}, Answer{Ask: 9})
}

// A job of another node has no owner here, and nobody but its workers is told when it is over.
func TestAJobOfAnotherNode(t *testing.T) {
	const away = ids.JobID(3<<36 | 1)
	c := New("n")
	step := func(ev Event) []Effect { return slices.Clone(c.Step(0, ev)) }
	step(Began{Job: 1})
	start, opened := pool.JobStarted{Job: away}, ToStore{objectstore.JobOpened{Job: away}}
	if fx := step(Hosted{Ask: 1, JobStarted: start}); !reflect.DeepEqual(fx, []Effect{opened, StartJob{Ask: 1, JobStarted: start}}) {
		t.Fatalf("it began with %+v", fx)
	}
	if fx := step(Hosted{Ask: 2, JobStarted: start}); !reflect.DeepEqual(fx, []Effect{opened, Answer{Ask: 2}}) { // a core before may have told neither
		t.Fatalf("it began again with %+v", fx)
	}
	for _, e := range step(Over{Job: 1}) {
		if o, ok := e.(ToOwner); ok {
			t.Errorf("the owner of job %v is told, which is on another node", o.Job)
		}
	}
	want := []Effect{Remove{away}, ToRaylet{pool.JobEnded{Job: away, Away: true}}, EndProcesses{away}, ToStore{objectstore.DropJob{Job: away}}, CleanUp{Job: away, Unmap: true}}
	if fx := step(Over{Job: away, Away: true}); !reflect.DeepEqual(fx, want) {
		t.Errorf("it ended with %+v, want %+v", fx, want)
	}
}
