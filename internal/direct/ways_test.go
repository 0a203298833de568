package direct

import (
	"testing"

	"mobula/internal/errs"
	"mobula/internal/ids"
)

// A process that waits for the way to an actor is told that it is dead, also where the actor never had an instance.
func TestADeadActorThatNeverLivedHasNoWay(t *testing.T) {
	w, a := NewWays(), ids.ActorID{1}
	why := errs.New(errs.CodeActorDied, "why")
	if out := w.Step(0, WayAsked{Client: 7, Actor: a}); len(out) != 0 {
		t.Fatalf("an actor that is being made: %+v", out)
	}
	out := w.Step(0, Ended{Actor: a, Dead: true, Err: why})
	if len(out) != 1 || out[0].Do != SayNoWay || !out[0].Dead || out[0].Client != 7 || out[0].Err != why {
		t.Fatalf("its death: %+v", out)
	}
	if out = w.Step(0, WayAsked{Client: 8, Actor: a, ByOwner: true}); len(out) != 1 || out[0].Do != SayNoWay || !out[0].Dead {
		t.Errorf("who asks after it: %+v", out)
	}
	w.Step(0, Forgotten{Actor: a})
	if len(w.actors)+len(w.clients) != 0 {
		t.Errorf("%d actors and %d processes are left", len(w.actors), len(w.clients))
	}
}

// Calls of an instance that no channel may lead to go by the owner: those of who waited for it, and of who asks later.
func TestAnInstanceApartIsCalledByTheOwner(t *testing.T) {
	w, a := NewWays(), ids.ActorID{1}
	w.Step(0, WayAsked{Client: 7, Actor: a})
	if out := w.Step(0, Began{Actor: a, Instance: 1, Host: 9, ByOwner: true}); len(out) != 1 || out[0].Do != GoByOwner || out[0].Client != 7 {
		t.Fatalf("it has begun: %+v", out)
	}
	if out := w.Step(0, WayAsked{Client: 8, Actor: a}); len(out) != 1 || out[0].Do != GoByOwner {
		t.Errorf("who asks then: %+v", out)
	}
}

// What is known of an instance goes with the last channel to it, and an actor's with the last of its own.
func TestAnActorIsForgottenWithItsLastChannel(t *testing.T) {
	w, a := NewWays(), ids.ActorID{1}
	w.CountFrom(100)
	w.Step(0, Began{Actor: a, Instance: 1, Host: 9})
	out := w.Step(0, WayAsked{Client: 7, Actor: a})
	if len(out) != 1 || out[0].Do != Open || out[0].Channel != 101 {
		t.Fatalf("the way: %+v", out)
	}
	w.Step(0, Ended{Actor: a, Instance: 1, Dead: true})
	w.Step(0, Forgotten{Actor: a})
	if len(w.actors) != 1 {
		t.Fatal("an actor with a channel is forgotten")
	}
	w.Step(0, HungUp{Channel: 101})
	if len(w.actors)+len(w.channels)+len(w.clients) != 0 {
		t.Errorf("left: %d actors, %d channels, %d processes", len(w.actors), len(w.channels), len(w.clients))
	}
	w.Step(0, HostGone{Actor: a, Instance: 1})
	if len(w.actors) != 0 {
		t.Error("the end of its process brings the actor back")
	}
}

// When a process ends that had several instances, the calls there whose callers are gone are decided, and of no others.
func TestTheEndOfAProcessIsOneOfItsInstances(t *testing.T) {
	w, a, b := NewWays(), ids.ActorID{1}, ids.ActorID{2}
	why := errs.New(errs.CodeActorUnavailable, "why")
	w.Step(0, Began{Actor: a, Instance: 1, Host: 9})
	w.Step(0, Began{Actor: b, Instance: 2, Host: 10})
	w.Step(0, WayAsked{Client: 7, Actor: a})
	w.Step(0, WayAsked{Client: 7, Actor: b})
	one, two := ids.TaskID{1}, ids.TaskID{2}
	w.Step(0, Adopting{Client: 7, Call: one, Actor: a, Order: 1, Channel: 1, No: 1})
	w.Step(0, Adopting{Client: 7, Call: two, Actor: b, Order: 1, Channel: 2, No: 1})
	w.Step(0, CallerGone{Client: 7})
	w.Step(0, Ended{Actor: a, Instance: 1, Err: why})
	w.Step(0, Ended{Actor: b, Instance: 2, Err: why})
	out := w.Step(0, ProcessGone{Host: 9})
	if len(out) == 0 || out[0].Do != DropChannel && out[0].Do != ResolveCall {
		t.Fatalf("its end: %+v", out)
	}
	for _, e := range out {
		if e.Do == ResolveCall && (e.Call != one || e.Outcome.Err != why) {
			t.Errorf("resolved: %+v", e)
		}
	}
	if w.Knows(two) && w.adopted[two].resolved {
		t.Error("the call of another process' instance is decided")
	}
}

// A channel of a core before this one keeps its number to itself.
func TestAnEarlierChannelsNumberIsNotGivenAgain(t *testing.T) {
	w, a := NewWays(), ids.ActorID{1}
	w.Step(0, Began{Actor: a, Instance: 1, Host: 9})
	w.Step(0, HasChannel{Client: 7, Actor: a, Instance: 1, Host: 9, Channel: 40})
	if out := w.Step(0, WayAsked{Client: 8, Actor: a}); len(out) != 1 || out[0].Channel != 41 {
		t.Errorf("the next one is %+v", out)
	}
}

// A cancel of an adopted call goes to the process that has it. When that is gone it goes to the host, also one that the process has not heard before it died.
func TestACancelOfAnAdoptedCall(t *testing.T) {
	w, a, force := NewWays(), ids.ActorID{1}, Wish{Force: true}
	w.Step(0, Began{Actor: a, Instance: 1, Host: 9})
	w.Step(0, WayAsked{Client: 7, Actor: a})
	sent, unsent, own := ids.TaskID{1}, ids.TaskID{2}, ids.TaskID{3}
	w.Step(0, Adopting{Client: 7, Call: sent, Actor: a, Order: 1, Channel: 1, No: 4})
	w.Step(0, Adopting{Client: 7, Call: unsent, Actor: a, Order: 2})
	w.Step(0, Submitted{Client: 7, Call: own, Actor: a})
	for _, call := range []ids.TaskID{sent, unsent} {
		out := w.Step(0, CancelAsked{Call: call, Wish: Wish{Recursive: true}})
		if len(out) != 1 || out[0].Do != PassCancel || out[0].Client != 7 || out[0].Call != call || out[0].Actor != a || !out[0].Wish.Recursive {
			t.Fatalf("while its process lives: %+v", out)
		}
	}
	for _, call := range []ids.TaskID{own, {4}} {
		if out := w.Step(0, CancelAsked{Call: call}); len(out) != 0 {
			t.Errorf("a call that is the owner's, or that it does not know: %+v", out)
		}
	}
	var asked []WaysEffect
	for _, e := range w.Step(0, CallerGone{Client: 7}) {
		if e.Do == AskEnd {
			asked = append(asked, e)
		}
	}
	if len(asked) != 1 || asked[0].Host != 9 || asked[0].Instance != 1 || asked[0].Channel != 1 || asked[0].No != 4 || asked[0].Wish != (Wish{Recursive: true}) {
		t.Fatalf("when its process is gone: %+v", asked)
	}
	if out := w.Step(0, CancelAsked{Call: sent, Wish: force}); len(out) != 1 || out[0].Do != AskEnd || out[0].Wish != (Wish{Force: true, Recursive: true}) {
		t.Errorf("cancelled again: %+v", out)
	}
	w.Step(0, Ended{Actor: a, Instance: 1, Err: errs.New(errs.CodeActorUnavailable, "why")})
	w.Step(0, HostGone{Actor: a, Instance: 1})
	if out := w.Step(0, CancelAsked{Call: sent, Wish: force}); len(out) != 0 {
		t.Errorf("when its host is gone too: %+v", out)
	}
}
