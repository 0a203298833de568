package owner

import (
	"testing"
	"time"

	"mobula/objectstore"
	"mobula/wire"
)

// The way to the node that keeps an object is cut, and the ways around it are not: it refuses the object to other stores, and is not heard itself. Who needs
// the object asks again, at once and then ever more seldom, not as fast as stores and owner answer each other.
func TestAnObjectWhoseKeeperDoesNotAnswerIsAskedForSeldom(t *testing.T) {
	s := newScript(t, Config{})
	far := s.elsewhere(5, 1)
	made := s.submit(simple)
	l, id := s.grant(far), made.ID.Return(0)
	x := s.executed(far)
	s.from(far, &wire.Seal{ID: id, Attempt: x.Attempt, Size: big})
	s.done(far, l, x, wire.Result{Kind: wire.ResultStored, Size: big})
	reader := s.submit(&wire.TaskOptions{Func: "read", NumReturns: 1, Affinity: wire.AffinityHard, Node: worker.Home()}, wire.Arg{Ref: id})
	gets, pins := 0, 0
	var refusals []objectstore.Lost // which the store is about to answer
	step := func(ev Event) {
		s.step(ev)
		for range told[objectstore.PinForGet](s) {
			gets, refusals = gets+1, append(refusals, objectstore.Lost{ID: id, Copy: 1, Client: driver})
		}
		for _, m := range told[objectstore.PinArgs](s) {
			pins, refusals = pins+1, append(refusals, objectstore.Lost{ID: id, Copy: 1, Task: m.Task, Attempt: m.Attempt, Ask: m.Ask})
		}
	}
	s.grant(worker)
	ask := told[objectstore.PinArgs](s)[0]
	refusals = append(refusals, objectstore.Lost{ID: id, Copy: 1, Task: reader.ID, Attempt: ask.Attempt, Ask: ask.Ask})
	step(FromClient{driver, []wire.Msg{&wire.Get{ID: id, Fetch: true}}})
	for end := s.now + int64(10*time.Second); s.now < end; { // the store refuses each within a millisecond
		answers := refusals
		refusals = nil
		for _, m := range answers {
			step(FromStore{Msg: m})
		}
		s.now += int64(time.Millisecond)
		step(Timer{})
	}
	if gets < 10 || gets > 30 || pins < 10 || pins > 30 {
		t.Errorf("in 10 s the get asked %d times, and the task %d times", gets, pins)
	}
	s.step(FromStore{Node: 5, Msg: objectstore.Lost{ID: id, Copy: 1}})
	if s.state(made).Terminal() {
		t.Error("its node has lost it, and it is not made again")
	}
}
