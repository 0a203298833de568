package owner

import (
	"slices"
	"testing"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/raylet/owner/actor"
	"mobula/wire"
)

// An actor that the node cannot find fails the calls that wait for it with the node's reason, and the next call asks again: nobody says that it is dead.
func TestAnActorThatCannotBeFound(t *testing.T) {
	s := newScript(t, Config{})
	far := &wire.TaskSpec{ID: ids.Derive(ids.RootTask(9, 9), 1)}
	id := ids.ActorID(far.ID)
	s.from(driver, &wire.WatchActor{Actor: id})
	first := s.call(far, 1)
	at := ActorAt{Actor: id, State: actor.Locating, Err: errs.New(errs.CodeActorUnavailable, "of another home")}
	s.step(FromDirectory{at})
	if news := sent[*wire.ActorNews](s, driver); len(news) != 1 || news[0].State == wire.ActorDead || news[0].Err == nil {
		t.Errorf("who watches is told %+v", news)
	}
	s.wantError(first.ID.Return(0), errs.CodeActorUnavailable)
	second := s.call(far, 2)
	if l := told[LocateActor](s); len(l) != 1 || l[0].Actor != id {
		t.Fatalf("the next call asks %+v", l)
	}
	s.step(FromDirectory{at})
	s.wantError(second.ID.Return(0), errs.CodeActorUnavailable)
	third := s.call(far, 3) // those before it are forgotten with the actor
	s.step(FromDirectory{ActorAt{Actor: id, State: actor.Alive, Worker: worker, Lease: 77, Opts: &wire.TaskOptions{Func: "f"}}})
	if got := s.executed(worker); got.Spec.ID != third.ID {
		t.Errorf("once it is found it runs %+v", got)
	}
}

// Of an actor that moves to where it cannot be called, calls that come to their turn later fail likewise: one whose argument is not there yet, and one that was
// pushed and is to be made again.
func TestAnActorThatMovesOutOfReach(t *testing.T) {
	s := newScript(t, Config{})
	far := &wire.TaskSpec{ID: ids.Derive(ids.RootTask(9, 9), 1)}
	id := ids.ActorID(far.ID)
	slow := s.submit(simple)
	pushed := s.call(far, 1)
	s.step(FromDirectory{ActorAt{Actor: id, State: actor.Alive, Worker: worker, Lease: 77, Opts: &wire.TaskOptions{Func: "f", MaxTaskRetries: -1}}})
	if got := s.executed(worker); got.Spec.ID != pushed.ID {
		t.Fatalf("pushed is %+v", got)
	}
	waits := s.call(far, 2, wire.Arg{Ref: slow.ID.Return(0)})
	s.step(FromDirectory{ActorAt{Actor: id, State: actor.Locating, Err: errs.New(errs.CodeActorUnavailable, "on another node")}})
	s.wantError(pushed.ID.Return(0), errs.CodeActorUnavailable)
	s.wantError(waits.ID.Return(0), errs.CodeActorUnavailable)
	if a := s.c.actors.byID[id]; a != nil {
		t.Errorf("an actor that nobody calls is known still: %+v", a)
	}
}

// A directory that lost what it knew is told again: what is claimed, where this job's actors are, and whom it looks for.
func TestADirectoryIsToldAgain(t *testing.T) {
	s := newScript(t, Config{})
	claims := s.create(&wire.TaskOptions{Func: "named", NumReturns: 1, ActorName: "claims", Namespace: "prod"})
	creates := s.create(&wire.TaskOptions{Func: "named", NumReturns: 1, ActorName: "creates", Namespace: "prod"})
	s.step(FromDirectory{NameClaimed{Actor: ids.ActorID(creates.ID)}})
	s.call(&wire.TaskSpec{ID: ids.Derive(ids.RootTask(9, 9), 1)}, 1)
	s.step(FromDirectory{Restate{}})
	if c := told[ClaimName](s); len(c) != 1 || c[0].Actor != ids.ActorID(claims.ID) {
		t.Errorf("claimed: %+v", c)
	}
	if p := told[PublishActor](s); len(p) != 1 || p[0].At.Actor != ids.ActorID(creates.ID) || p[0].At.State != actor.Creating {
		t.Errorf("published: %+v", p)
	}
	if l := told[LocateActor](s); len(l) != 1 || l[0].Actor.Job() != 9 {
		t.Errorf("looked for: %+v", l)
	}
	s.step(FromDirectory{NameClaimed{Actor: ids.ActorID(claims.ID), Err: errs.New(errs.CodeNameTaken, "taken")}})
	s.step(FromDirectory{Restate{}})
	if c := told[ClaimName](s); slices.ContainsFunc(c, func(c ClaimName) bool { return c.Actor == ids.ActorID(claims.ID) }) {
		t.Error("one that is dead claims still")
	}
}
