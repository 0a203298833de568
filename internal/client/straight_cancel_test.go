package client

import (
	"errors"
	"slices"
	"testing"

	"mobula/internal/direct"
	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/wire"
)

// running is a call that has come straight to the client's process.
func (a *host) running() *TaskContext {
	id := a.c.Root().NextTask()
	return &TaskContext{Client: a.c, Task: id, Attempt: 1, Once: true, Straight: true, Spec: &wire.TaskSpec{ID: id, Kind: wire.TaskActorCall, Actor: a.actor, Opts: plain}}
}

// makes has a call submit a task, or call the actor.
func (a *host) makes(tc *TaskContext, kind wire.TaskKind) *Handle {
	a.t.Helper()
	spec := &wire.TaskSpec{ID: tc.NextTask(), Parent: tc.Base(), Kind: kind, Opts: plain}
	if kind == wire.TaskActorCall {
		spec.Actor = a.actor
	}
	hs, err := a.c.Submit(WithTask(a.t.Context(), tc), spec)
	if err != nil {
		a.t.Fatal(err)
	}
	return hs[0]
}

// said are messages that the node has seen, in order.
func (a *host) said(is func(wire.Msg) bool) (out []wire.Msg) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, m := range a.log {
		if is(m) {
			out = append(out, m)
		}
	}
	return out
}

func ofMakers(m wire.Msg) bool {
	switch m.(type) {
	case *wire.Runs, *wire.Ran, *wire.Adopt, *wire.CancelMade, *wire.Submit, *wire.Holdings:
		return true
	}
	return false
}

// Before the owner is told of what a call makes it is told of the call, once, and then that it has ended.
func TestTheOwnerIsToldWhoMakesWhat(t *testing.T) {
	goOn, began := make(chan struct{}), make(chan struct{}, 8)
	a := newHost(t, func(*wire.TaskSpec) *direct.Outcome { began <- struct{}{}; <-goOn; return says("it") })
	defer close(goOn)
	a.call(plain)
	<-began // there is a channel
	a.mu.Lock()
	a.log = nil
	a.mu.Unlock()
	silent, submits, passes := a.running(), a.running(), a.running()
	a.makes(silent, wire.TaskActorCall)
	a.makes(submits, wire.TaskNormal)
	a.makes(submits, wire.TaskNormal)
	a.makes(passes, wire.TaskActorCall).Passed()
	a.c.Deliver([]wire.Msg{&wire.Resync{Component: wire.ComponentOwner, Epoch: 2}})
	for _, tc := range []*TaskContext{silent, submits, passes} {
		tc.Ended()
	}
	a.makes(submits, wire.TaskNormal) // by what the call has left behind
	a.makes(silent, wire.TaskActorCall).Passed()
	sync := a.makes(a.c.Root(), wire.TaskNormal)
	a.until("all is told", func() bool {
		m := saw[*wire.Submit](a)
		return len(m) > 0 && m[len(m)-1].Spec.ID == sync.id.Task
	})
	var got []string
	name := map[ids.TaskID]string{silent.Task: "silent", submits.Task: "submits", passes.Task: "passes"}
	for _, m := range a.said(ofMakers) {
		switch m := m.(type) {
		case *wire.Runs:
			if m.Actor != a.actor {
				t.Errorf("it is a call of %v", m.Actor)
			}
			got = append(got, name[m.Task]+" runs")
		case *wire.Ran:
			got = append(got, name[m.Task]+" ran")
		case *wire.Submit:
			got = append(got, "submit")
		case *wire.Adopt:
			got = append(got, "adopt")
		case *wire.Holdings:
			got = append(got, "holdings")
		}
	}
	slices.Sort(got[5:7]) // those that run, in any order
	want := []string{"submits runs", "submit", "submit", "passes runs", "adopt", "passes runs", "submits runs", "adopt", "holdings", "submits ran", "passes ran", "submit", "adopt", "submit"}
	if !slices.Equal(got, want) {
		t.Errorf("the owner was told\n%q, want\n%q", got, want)
	}
}

// A cancel of what a call has made ends the calls of which the owner was not told, and asks it for the others. Those it has their process end itself.
func TestWhatACallHasMadeIsCancelled(t *testing.T) {
	goOn := make(chan struct{})
	a := newHost(t, func(*wire.TaskSpec) *direct.Outcome { <-goOn; return says("it") })
	defer close(goOn)
	force := wire.Wish{Force: true, Recursive: true}
	nothing, silent, passes, pushed := a.running(), a.running(), a.running(), a.running()
	pushed.Straight = false
	unknown, alone, known, ofPushed := a.makes(silent, wire.TaskActorCall), a.makes(passes, wire.TaskActorCall), a.makes(passes, wire.TaskActorCall), a.makes(pushed, wire.TaskActorCall)
	known.Passed()
	a.c.CancelMade(nothing, direct.Wish(force))
	a.c.CancelMade(silent, direct.Wish(force))
	a.c.CancelMade(passes, direct.Wish(force))
	ends := func(what string, h *Handle) {
		t.Helper()
		if _, err := a.c.Get1(t.Context(), h); !errors.Is(err, errs.ErrCancelled) {
			t.Errorf("%s came to %v", what, err)
		}
	}
	ends("a call that the owner does not know", unknown)
	ends("one beside one that it does", alone)
	a.c.Deliver([]wire.Msg{&wire.CancelMade{Task: pushed.Task, Wish: force}})
	ends("the call of one that the owner has pushed", ofPushed)
	a.until("the owner is asked", func() bool {
		m := saw[*wire.CancelMade](a)
		return len(m) == 1 && m[0].Task == passes.Task && m[0].Wish == force
	})
	if !known.awaited() {
		t.Error("the call that the owner knows has ended")
	}
	task := known.id.Task
	a.c.Deliver([]wire.Msg{&wire.CancelCall{Task: unknown.id.Task, Actor: a.actor, Wish: force}, &wire.CancelCall{Task: task, Wish: force}, &wire.CancelCall{Task: task, Actor: a.actor, Wish: force}})
	ends("the call that the owner knows", known)
	a.until("and is told", func() bool {
		m := saw[*wire.Adopt](a)
		return len(m) > 0 && m[len(m)-1].Spec.ID == task && m[len(m)-1].Outcome != nil
	})
}

// A call that the owner has cancelled is found though nobody here holds its result any more.
func TestACallWithoutAHandleIsCancelled(t *testing.T) {
	goOn, began := make(chan struct{}), make(chan struct{})
	a := newHost(t, func(*wire.TaskSpec) *direct.Outcome { close(began); <-goOn; return says("it") })
	defer close(goOn)
	spec, hs := a.call(plain)
	<-began
	hs[0].Passed()
	hs[0].Release()
	a.c.Flush()
	a.c.Deliver([]wire.Msg{&wire.CancelCall{Task: spec.ID, Actor: a.actor, Wish: wire.Wish{Force: true}}})
	a.until("its end is told", func() bool {
		m := saw[*wire.Adopt](a)
		if len(m) == 0 || m[len(m)-1].Outcome == nil {
			return false
		}
		err := m[len(m)-1].Outcome.Err
		return err != nil && err.Code == errs.CodeCancelled
	})
}
