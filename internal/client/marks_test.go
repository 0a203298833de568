package client

import (
	"testing"

	"mobula/internal/direct"
	"mobula/internal/ids"
	"mobula/internal/testkit"
	"mobula/wire"
)

// Owners are asked once each, again when they were made anew, and what waits for them goes on when all have answered.
func TestOwnersSayWhatTheyHaveTaken(t *testing.T) {
	a := newHost(t, func(*wire.TaskSpec) *direct.Outcome { return new(direct.Outcome) })
	ms := &a.c.straight.marks
	known := make(chan struct{})
	other := ids.RootTask(a.c.cfg.Welcome.Job+1, 1).Put(1)
	ms.ask([]ids.ObjectID{other, other, ids.RootTask(a.c.cfg.Welcome.Job, 1).Put(1)}, func() { close(known) })
	open := func() int {
		ms.mu.Lock()
		defer ms.mu.Unlock()
		n := 0
		for _, k := range ms.open {
			n += len(k.jobs)
		}
		return n
	}
	if n := open(); n > 2 {
		t.Errorf("%d owners are asked", n)
	}
	ms.again()
	ms.marked(&wire.Marked{Job: a.c.cfg.Welcome.Job, No: 1})
	ms.marked(&wire.Marked{Job: a.c.cfg.Welcome.Job, No: 1}) // of the one made anew
	select {
	case <-known:
		t.Fatal("an owner has not answered")
	default:
	}
	ms.marked(&wire.Marked{Job: a.c.cfg.Welcome.Job + 1, No: 1})
	testkit.Receive(t, "the owners' word", known)
	if n := open(); n != 0 {
		t.Errorf("%d are open", n)
	}
}
