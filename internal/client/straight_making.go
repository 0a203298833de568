package client

import (
	"mobula/internal/ids"
	"mobula/wire"
)

// This file is what calls that have come straight to this process make while they run. The owner does not know such a call: before it is told of something that the call
// has made, it is told of that call, once, and of its end.

// The states of TaskContext.making.
const (
	makesNothing uint32 = iota // of which the owner was told
	saysSo                     // the owner is being told
	makes                      // the owner was told
	made                       // it has ended: the owner is not told any more
)

// maker has the owner know who makes what it is told of next.
func (s *straight) maker(tc *TaskContext) {
	if tc == nil || !tc.Straight || tc.making.Load() >= makes {
		return
	}
	s.makers.mu.Lock()
	defer s.makers.mu.Unlock()
	if !tc.making.CompareAndSwap(makesNothing, saysSo) {
		return
	}
	if s.makers.of == nil {
		s.makers.of = make(map[ids.TaskID]*TaskContext)
	}
	s.makers.of[tc.Base()] = tc
	_ = s.outbox.send(&wire.Runs{Task: tc.Base(), Actor: tc.Spec.Actor}) // a dead connection is reported elsewhere
	tc.making.Store(makes)
}

// Ended says that a call which has come straight has ended.
func (tc *TaskContext) Ended() {
	if tc.making.CompareAndSwap(makesNothing, made) {
		return
	}
	s := &tc.Client.straight
	s.makers.mu.Lock()
	defer s.makers.mu.Unlock()
	if !tc.making.CompareAndSwap(makes, made) || s.makers.of[tc.Base()] != tc { // it runs again while this attempt was left behind
		return
	}
	delete(s.makers.of, tc.Base())
	_ = s.outbox.send(&wire.Ran{Task: tc.Base()})
}

// tellMakers tells an owner that was made anew who makes what it knows.
func (s *straight) tellMakers() {
	s.makers.mu.Lock()
	defer s.makers.mu.Unlock()
	for id, tc := range s.makers.of {
		_ = s.outbox.send(&wire.Runs{Task: id, Actor: tc.Spec.Actor})
	}
}
