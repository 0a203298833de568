package owner

import (
	"slices"
	"testing"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/raylet/sched"
	"mobula/wire"
)

const apart ids.ClientID = 4 // a worker in a process of its own

// straightScript is a script of a job whose calls go straight: of the driver and two workers in the node's process.
func straightScript(t *testing.T) *script {
	cfg := Config{Job: 1, StraightCalls: true}
	s := &script{t: t, c: New(cfg), now: 1e18, root: ids.RootTask(1, 1), logs: make(map[uint64][]byte)}
	s.step(ClientJoined{Client: driver, Role: wire.RoleDriver, Straight: true})
	s.step(ClientJoined{Client: worker, Role: wire.RoleWorker, Straight: true})
	s.step(ClientJoined{Client: worker2, Role: wire.RoleWorker, Straight: true})
	s.step(ClientJoined{Client: apart, Role: wire.RoleWorker})
	return s
}

func (s *script) askWay(cl ids.ClientID, a *wire.TaskSpec) []*wire.Way {
	s.t.Helper()
	s.from(cl, &wire.AskWay{Actor: ids.ActorID(a.ID)})
	return sent[*wire.Way](s, cl)
}

// channel asks for the way, and gives the channel that is answered.
func (s *script) channel(cl ids.ClientID, a *wire.TaskSpec) uint64 {
	s.t.Helper()
	ways := s.askWay(cl, a)
	if len(ways) != 1 || ways[0].Err != nil || ways[0].ByOwner || ways[0].Channel == 0 {
		s.t.Fatalf("the way of client %v is %+v", cl, ways)
	}
	return ways[0].Channel
}

func (s *script) wantWay(what string, ways []*wire.Way, is func(*wire.Way) bool) {
	s.t.Helper()
	if len(ways) != 1 || !is(ways[0]) {
		s.t.Errorf("%s: the way is %+v", what, ways)
	}
}

func byOwner(w *wire.Way) bool { return w.ByOwner && w.Channel == 0 && w.Err == nil }

// The way to an actor is a channel to its instance, with what its caller has to know.
func TestTheWayToAnActor(t *testing.T) {
	s := straightScript(t)
	opts := &wire.TaskOptions{Func: "grouped", NumReturns: 1, MaxRestarts: 1, MaxTaskRetries: 2, Groups: []wire.ConcurrencyGroup{{Name: "io", Max: 2}, {Max: 1}, {Name: "cpu", Max: 1}}}
	a, l := s.spawn(opts, worker)
	ways := s.askWay(driver, a)
	s.wantWay("an actor that lives", ways, func(w *wire.Way) bool {
		return w.Instance == l && w.Channel != 0 && w.Retries == 2 && slices.Equal(w.Groups, []string{"", "io", "cpu"}) && w.Actor == ids.ActorID(a.ID)
	})
	for _, e := range s.out {
		if e.Kind == ToClient && e.Client == worker {
			t.Errorf("its host is told %+v", e.Wire)
		}
	}
	if other := s.channel(worker2, a); other == ways[0].Channel {
		t.Error("two processes have one channel")
	}
}

// Who asks for the way to an actor that is being made hears of it when it is there.
func TestTheWayIsWaitedFor(t *testing.T) {
	s := straightScript(t)
	a := s.create(counter)
	if ways := s.askWay(driver, a); len(ways) != 0 {
		t.Fatalf("before there is one: %+v", ways)
	}
	l := s.grant(worker)
	s.done(worker, l, s.executed(worker), inline(""))
	s.wantWay("it is there", sent[*wire.Way](s, driver), func(w *wire.Way) bool { return w.Instance == l })
	b := s.create(&wire.TaskOptions{Func: "other", NumReturns: 1})
	s.askWay(driver, b)
	l = s.grant(apart)
	s.done(apart, l, s.executed(apart), inline(""))
	s.wantWay("it is in another process", sent[*wire.Way](s, driver), byOwner)
	s.wantWay("and is asked for again", s.askWay(worker2, b), byOwner)
	c := s.create(counter)
	s.askWay(driver, c)
	s.from(driver, &wire.KillActor{Actor: ids.ActorID(c.ID)})
	s.wantWay("it dies before it lives", sent[*wire.Way](s, driver), func(w *wire.Way) bool { return w.Dead && w.Err.Code == errs.CodeActorDied })
}

// Where no channel may lead, calls go by the owner.
func TestCallsThatDoNotGoStraight(t *testing.T) {
	s := straightScript(t)
	a, _ := s.spawn(counter, worker)
	s.wantWay("from another process", s.askWay(apart, a), byOwner)
	s.wantWay("of another job", s.askWay(driver, &wire.TaskSpec{ID: ids.Derive(ids.RootTask(9, 9), 1)}), byOwner)
	s.wantWay("unknown", s.askWay(driver, &wire.TaskSpec{ID: ids.Derive(s.root, 77)}), byOwner)
	heavy, _ := s.spawn(&wire.TaskOptions{Func: "heavy", NumReturns: 1, Resources: []wire.Resource{{Name: "CPU", Amount: 1000}}}, worker)
	s.wantWay("it holds a CPU", s.askWay(driver, heavy), byOwner)
	maybe := s.create(&wire.TaskOptions{Func: "maybe", NumReturns: 1, ActorName: "m", GetIfExists: true})
	s.wantWay("it may be an alias", s.askWay(driver, maybe), byOwner)
}

// Without the setting nothing is told, and who asks all the same is referred to the owner.
func TestNothingGoesStraightUnlessItIsSet(t *testing.T) {
	s := newScript(t, Config{})
	a, l := s.spawn(mortal(1), worker)
	s.wantWay("off", s.askWay(driver, a), byOwner)
	call := s.callSpec(a, 1)
	s.from(driver, &wire.Adopt{Spec: call})
	if got := s.pushed(worker); len(sent[*wire.Adopted](s, driver)) != 1 || !slices.Equal(got, []ids.TaskID{call.ID}) {
		t.Errorf("an adopted call is submitted: pushed %v", got)
	}
	s.kill(worker, errs.CodeWorkerCrashed, 0, l)
	for _, e := range s.out {
		if _, ok := e.Wire.(*wire.Over); ok {
			t.Error("a client is told of a channel")
		}
	}
	if s.c.ways != nil || len(s.c.actors.touched) != 0 {
		t.Error("the core keeps what nobody asks for")
	}
}

// Who has a channel is told of the end of the instance, and whether another follows; who asks then waits for it.
func TestARestartAndADeathAreTold(t *testing.T) {
	s := straightScript(t)
	a, l := s.spawn(mortal(1), worker)
	c := s.channel(driver, a)
	s.kill(worker, errs.CodeWorkerCrashed, 0, l)
	over := sent[*wire.Over](s, driver)
	if len(over) != 1 || over[0].Channel != c || over[0].Next != wire.NextInstance || over[0].Keeps || over[0].Err.Code != errs.CodeActorUnavailable || over[0].Actor != ids.ActorID(a.ID) {
		t.Fatalf("the restart is told as %+v", over)
	}
	s.wantWay("it restarts, and keeps no calls", s.askWay(worker2, a), func(w *wire.Way) bool { return w.Err.Code == errs.CodeActorUnavailable && !w.Dead })
	l = s.grant(worker2)
	s.done(worker2, l, s.executed(worker2), inline(""))
	next := s.channel(driver, a)
	if next == c {
		t.Error("the channel to the next instance has an old number")
	}
	s.from(driver, &wire.HangUp{Channel: c}, &wire.KillActor{Actor: ids.ActorID(a.ID)})
	over = sent[*wire.Over](s, driver)
	if len(over) != 1 || over[0].Channel != next || over[0].Next != wire.NextNone || over[0].Err.Code != errs.CodeActorDied {
		t.Fatalf("the death is told as %+v", over)
	}
	s.wantWay("it is dead", s.askWay(worker2, a), func(w *wire.Way) bool { return w.Dead && w.Err.Code == errs.CodeActorDied })
}

// Calls that have not begun wait for the next instance where an actor's calls do; so do those who ask.
func TestAnActorWithRetriesKeepsItsCalls(t *testing.T) {
	s := straightScript(t)
	a, l := s.spawn(&wire.TaskOptions{Func: "retried", NumReturns: 1, MaxRestarts: 1, MaxTaskRetries: 1}, worker)
	s.channel(driver, a)
	s.kill(worker, errs.CodeWorkerCrashed, 0, l)
	if over := sent[*wire.Over](s, driver); len(over) != 1 || !over[0].Keeps {
		t.Fatalf("told %+v", over)
	}
	if ways := s.askWay(driver, a); len(ways) != 0 {
		t.Fatalf("it waits for nothing: %+v", ways)
	}
	l = s.grant(worker2)
	s.done(worker2, l, s.executed(worker2), inline(""))
	s.wantWay("the next instance", sent[*wire.Way](s, driver), func(w *wire.Way) bool { return w.Instance == l })
}

// An actor that was asked to end takes no calls of those who have no channel to it yet.
func TestAnActorThatEndsHasNoWay(t *testing.T) {
	s := straightScript(t)
	a, l := s.spawn(counter, worker)
	call := s.call(a, 1)
	s.from(driver, &wire.KillActor{Actor: ids.ActorID(a.ID), Stop: true})
	s.wantWay("it ends", s.askWay(worker2, a), func(w *wire.Way) bool { return w.Dead && w.Err.Code == errs.CodeActorDied })
	s.done(worker, l, s.attempt(call), inline("1"))
	s.closed(worker, a)
}

// A broken channel is asked about: its host says that it lives, or its end is told.
func TestAWordOnAChannel(t *testing.T) {
	s := straightScript(t)
	a, l := s.spawn(mortal(1), worker)
	c := s.channel(driver, a)
	s.from(driver, &wire.AskWord{Channel: c})
	if m := sent[*wire.StillThere](s, worker); len(m) != 1 || m[0].Instance != l || m[0].Channel != c {
		t.Fatalf("its host is asked %+v", m)
	}
	s.from(worker, &wire.Lives{Channel: c})
	if over := sent[*wire.Over](s, driver); len(over) != 1 || over[0].Next != wire.NextSame {
		t.Fatalf("told %+v", over)
	}
	s.from(driver, &wire.HangUp{Channel: c})
	if m := sent[*wire.Dropped](s, worker); len(m) != 1 || m[0].Channel != c {
		t.Errorf("its host is told %+v", m)
	}
}

// Nothing is kept of actors and processes that are gone.
func TestNothingIsKeptOfDeadActors(t *testing.T) {
	s := straightScript(t)
	a, _ := s.spawn(counter, worker)
	c := s.channel(driver, a)
	s.from(driver, &wire.KillActor{Actor: ids.ActorID(a.ID)})
	s.from(driver, &wire.HangUp{Channel: c}, &wire.Release{IDs: []ids.ObjectID{a.ID.Return(0)}})
	if s.c.actors.byID[ids.ActorID(a.ID)] != nil {
		t.Fatal("the actor's record stays")
	}
	s.step(FromSched{sched.Revoked{}})
	if n := s.c.ways.Known(); n != 0 {
		t.Errorf("%d things are known still", n)
	}
}

// A core made again counts its channels on from where no earlier one had.
func TestChannelsOfACoreMadeAgain(t *testing.T) {
	s := straightScript(t)
	a, _ := s.spawn(counter, worker)
	before := s.channel(driver, a)
	s.rebuildStraight(7, map[ids.ClientID][]wire.Msg{
		driver: {&wire.Holdings{Component: wire.ComponentOwner, Epoch: 7, Handles: []ids.ObjectID{a.ID.Return(0)}}},
		worker: {&wire.Holdings{Component: wire.ComponentOwner, Epoch: 7, Actors: []ids.ActorID{ids.ActorID(a.ID)}}},
	})
	if after := s.channel(driver, a); after <= before {
		t.Errorf("channel %d after channel %d", after, before)
	}
}

// rebuildStraight makes the core again, and has its clients say something.
func (s *script) rebuildStraight(epoch uint64, say map[ids.ClientID][]wire.Msg) {
	s.t.Helper()
	c, err := Rebuild(Config{Job: 1, StraightCalls: true}, func(yield func(uint64, []byte) bool) {
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
	r := Restored{Epoch: epoch, Clients: []ClientJoined{{Client: driver, Role: wire.RoleDriver, Straight: true}, {Client: worker, Role: wire.RoleWorker, Straight: true}}}
	speak := []ids.ClientID{driver, worker}
	if _, third := say[worker2]; third {
		r.Clients = append(r.Clients, ClientJoined{Client: worker2, Role: wire.RoleWorker, Straight: true})
		speak = []ids.ClientID{worker2, driver, worker}
	}
	s.step(r)
	for _, cl := range speak {
		s.from(cl, say[cl]...)
	}
}

// A core made again hears of the channels that there are from those who have them, and tells of their ends: of an instance that was lost meanwhile when it
// is known what follows.
func TestACoreMadeAgainHearsOfChannels(t *testing.T) {
	for _, lost := range []bool{false, true} {
		s := straightScript(t)
		a, l := s.spawn(mortal(1), worker)
		c := s.channel(driver, a)
		h, w := holds(7), holds(7)
		h.Handles = []ids.ObjectID{a.ID.Return(0)}
		if !lost {
			w.Actors = []ids.ActorID{ids.ActorID(a.ID)}
		}
		s.rebuildStraight(7, map[ids.ClientID][]wire.Msg{driver: {&wire.Linked{Actor: ids.ActorID(a.ID), Instance: l, Channel: c}, h}, worker: {w}})
		if !lost {
			if over := sent[*wire.Over](s, driver); len(over) != 0 {
				t.Fatalf("of an instance that lives is told %+v", over)
			}
			s.kill(worker, errs.CodeWorkerCrashed, 0, l)
		}
		if over := sent[*wire.Over](s, driver); len(over) != 1 || over[0].Channel != c || over[0].Next != wire.NextInstance {
			t.Fatalf("lost %v: told %+v", lost, over)
		}
		s.from(driver, &wire.Linked{Actor: ids.ActorID(a.ID), Instance: 99, Channel: 98})
		if over := sent[*wire.Over](s, driver); len(over) != 1 || over[0].Channel != 98 {
			t.Errorf("of an instance before that is told %+v", over)
		}
	}
	s := straightScript(t)
	s.from(driver, &wire.Linked{Actor: ids.ActorID(ids.Derive(s.root, 77)), Instance: 9, Channel: 5})
	if over := sent[*wire.Over](s, driver); len(over) != 1 || over[0].Next != wire.NextNone || over[0].Err.Code != errs.CodeActorDied {
		t.Errorf("of an actor that is forgotten is told %+v", over)
	}
}
