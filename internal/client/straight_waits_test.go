package client

import (
	"context"
	"errors"
	"slices"
	"testing"

	"mobula/internal/direct"
	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/internal/testkit"
	"mobula/wire"
)

// methodOf is the context of a call of an actor in a client's process that went straight.
func (a *host) methodOf(opts *wire.TaskOptions) (context.Context, *TaskContext) {
	ctx, cancel := context.WithCancel(a.t.Context())
	a.t.Cleanup(cancel)
	spec := &wire.TaskSpec{ID: a.c.Root().NextTask(), Kind: wire.TaskActorCall, Actor: a.actor, Opts: opts}
	tc := &TaskContext{Client: a.c, Task: spec.ID, Spec: spec, Own: ctx, Hosted: &Hosted{Actor: a.actor, Instance: 9}}
	return WithTask(ctx, tc), tc
}

// heard waits until the node has seen so many messages of a type.
func heard[M wire.Msg](a *host, n int) []M {
	var all []M
	testkit.Eventually(a.t, "the node hears of it", func() bool {
		a.mu.Lock()
		defer a.mu.Unlock()
		all = saw[M](a)
		return len(all) >= n
	})
	return all
}

// heldHost is an actor whose calls run until they are let go, and one that runs.
func heldHost(t *testing.T) (a *host, first *Handle, letGo func()) {
	hold, runs := make(chan struct{}), make(chan struct{}, 4)
	a = newHost(t, func(*wire.TaskSpec) *direct.Outcome { runs <- struct{}{}; <-hold; return says("ran") })
	_, hs := a.call(plain)
	testkit.Receive(t, "the first call's begin", runs)
	return a, hs[0], func() { close(hold) }
}

// The owner hears of a wait of an actor's call that takes long: of what it does not see, with what it is for, and when it is over.
func TestALongWaitIsTold(t *testing.T) {
	a, first, letGo := heldHost(t)
	ctx, tc := a.methodOf(&wire.TaskOptions{Func: "waiter", Group: "other"})
	spec, hs := a.call(&wire.TaskOptions{Func: "needed", NumReturns: 1, Group: "other"}) // it is held too
	got := make(chan error, 1)
	go func() {
		_, err := a.c.Get(ctx, first, hs[0])
		got <- err
	}()
	m := heard[*wire.Waits](a, 1)[0]
	if m.Task != tc.Task || m.Name != "waiter" || m.Actor != a.actor || m.Instance != 9 || m.Group != "other" || m.Round != 0 {
		t.Errorf("told %+v", m)
	}
	want := []wire.Need{{Object: first.ID(), Call: true, Name: plain.Func, Actor: a.actor}, {Object: spec.ID.Return(0), Call: true, Name: "needed", Actor: a.actor, Group: "other"}}
	if !slices.Equal(m.Needs, want) {
		t.Errorf("it is for %+v", m.Needs)
	}
	a.c.Dispatch(&wire.StillWaits{No: m.No + 1, Round: 6})
	a.c.Dispatch(&wire.StillWaits{No: m.No, Round: 7})
	if again := heard[*wire.Waits](a, 2)[1]; again.No != m.No || again.Round != 7 {
		t.Errorf("answered %+v", again)
	}
	a.c.Dispatch(&wire.Resync{Component: wire.ComponentOwner, Epoch: 2})
	if again := heard[*wire.Waits](a, 3)[2]; again.No != m.No || again.Round != 0 {
		t.Errorf("an owner that was made anew is told %+v", again)
	}
	letGo()
	if err := testkit.Receive(t, "the values", got); err != nil {
		t.Error(err)
	}
	if over := heard[*wire.WaitOver](a, 1)[0]; over.No != m.No || over.Task != tc.Task {
		t.Errorf("it is over: %+v", over)
	}
	a.c.Dispatch(&wire.StillWaits{No: m.No, Round: 8})
	if n := len(heard[*wire.Waits](a, 0)); n != 3 {
		t.Errorf("told %d times", n)
	}
}

// Who may give up by himself, or is no actor's call, is in no circle.
func TestOtherLongWaitsAreNotTold(t *testing.T) {
	a, first, letGo := heldHost(t)
	ctx, tc := a.methodOf(plain)
	short, cancel := context.WithTimeout(ctx, 3*tellWaitAfter)
	defer cancel()
	if _, err := a.c.Get(short, first); !errors.Is(err, errs.ErrGetTimeout) {
		t.Errorf("a wait with a deadline: %v", err)
	}
	own, cancelOwn := context.WithTimeout(t.Context(), 3*tellWaitAfter)
	defer cancelOwn()
	if _, err := a.c.Get(own, first); !errors.Is(err, errs.ErrGetTimeout) {
		t.Errorf("the driver's wait: %v", err)
	}
	pushed := &TaskContext{Client: a.c, Task: tc.Task, Spec: tc.Spec, Own: own, Hosted: tc.Hosted, Blocker: new(countingBlocker)}
	if _, err := a.c.Get(WithTask(own, pushed), a.lost()); !errors.Is(err, errs.ErrGetTimeout) && !errors.Is(err, errs.ErrCancelled) {
		t.Errorf("a wait of a call by the owner for what the owner knows: %v", err)
	}
	if n := len(heard[*wire.Waits](a, 0)); n != 0 {
		t.Errorf("told %d times", n)
	}
	letGo()
}

// lost is an object that the owner knows, and nobody makes.
func (a *host) lost() *Handle {
	a.mu.Lock()
	a.mute = true
	a.mu.Unlock()
	return a.c.outbox.Bind(a.c.Root().NextTask().Return(0))
}

// A call that can never begin ends with what the owner says; one that runs goes on.
func TestACallThatCannotBeginEnds(t *testing.T) {
	a, first, letGo := heldHost(t)
	spec, hs := a.call(plain)
	deadlock := errs.New(errs.CodeDeadlock, "it waits for itself")
	a.c.Dispatch(&wire.CannotBegin{Task: first.ID().Task, Err: deadlock})
	a.c.Dispatch(&wire.CannotBegin{Task: spec.ID, Err: deadlock})
	a.c.Dispatch(&wire.CannotBegin{Task: ids.TaskID{1}, Err: deadlock})
	if _, err := a.c.Get1(t.Context(), hs[0]); !errors.Is(err, errs.ErrDeadlock) {
		t.Errorf("it has come to %v", err)
	}
	letGo()
	if _, err := a.c.Get1(t.Context(), first); err != nil {
		t.Errorf("the one that runs has come to %v", err)
	}
}
