package client

import (
	"errors"
	"testing"

	"mobula/internal/direct"
	"mobula/internal/direct/talk"
	"mobula/internal/errs"
	"mobula/wire"
)

// toldEnded closes the client, and is what the owner was told of ended calls.
func (a *host) toldEnded() (sum wire.EndedCount, calls []wire.EndedCall) {
	a.t.Helper()
	if err := a.c.Close(a.t.Context()); err != nil {
		a.t.Fatal(err)
	}
	<-a.done
	for _, m := range saw[*wire.EndedCalls](a) {
		for _, n := range m.Counts {
			sum.Opts = n.Opts
			sum.Finished, sum.Failed, sum.Cancelled = sum.Finished+n.Finished, sum.Failed+n.Failed, sum.Cancelled+n.Cancelled
		}
		calls = append(calls, m.Calls...)
	}
	return sum, calls
}

// The owner is told how many calls have ended and how; and of the first of a second, and of those that have failed, each.
func TestEndedCallsAreTold(t *testing.T) {
	hold, began := make(chan struct{}), make(chan struct{}, 1)
	ran := &wire.Run{Worker: 7, Times: wire.Times{Started: 1, Ended: 2}}
	a := newHost(t, func(s *wire.TaskSpec) *direct.Outcome {
		switch s.Opts.Func {
		case "hold":
			began <- struct{}{}
			<-hold
		case "fail":
			return &direct.Outcome{Err: errs.New(errs.CodeTaskFailed, "no")}
		}
		o := says("it")
		if s.Submitted != 0 {
			o.Value.(*talk.Answer).Ran = ran
		}
		return o
	})
	a.c.straight.sweeping = true // no sweep comes in between
	ask := func(f string) (*wire.TaskSpec, *Handle) {
		spec, hs := a.call(&wire.TaskOptions{Func: f, NumReturns: 1})
		return spec, hs[0]
	}
	first, h := ask("one")
	wantValue(t, a.c, h, "it")
	a.c.straight.untimed.Store(0)
	const n = 1000
	for range n {
		_, h := ask("one")
		wantValue(t, a.c, h, "it")
		h.Release()
	}
	failed, h := ask("fail")
	if _, err := a.c.Get1(t.Context(), h); !errors.Is(err, errs.ErrTaskFailed) {
		t.Error(err)
	}
	_, held := ask("hold")
	<-began
	waits, h := ask("one")
	if err := a.c.Cancel(wire.Cancel{Task: waits.ID}); err != nil {
		t.Fatal(err)
	}
	if _, err := a.c.Get1(t.Context(), h); !errors.Is(err, errs.ErrCancelled) {
		t.Error(err)
	}
	held.Passed() // the owner counts it
	close(hold)
	wantValue(t, a.c, held, "it")
	a.c.TellEnded()
	a.c.TellEnded() // which has nothing more to tell
	sum, calls := a.toldEnded()
	if sum.Finished != n || sum.Failed != 0 || sum.Cancelled != 0 {
		t.Errorf("counted are %+v", sum)
	}
	if len(calls) != 3 || calls[0].Spec != first || calls[0].Ran != ran || calls[0].At < first.Submitted || calls[1].Spec != failed || calls[1].Err == nil || calls[2].Spec != waits {
		t.Errorf("told of are %+v", calls)
	}
}

// A call that has ended is told of before its reference leaves: what takes that is linked to it.
func TestAnEndedCallIsToldBeforeItIsAdopted(t *testing.T) {
	a := newHost(t, func(*wire.TaskSpec) *direct.Outcome { return says("it") })
	spec, hs := a.call(plain)
	wantValue(t, a.c, hs[0], "it")
	hs[0].Passed()
	a.toldEnded()
	told, adopted := false, false
	for _, m := range a.log {
		switch m := m.(type) {
		case *wire.EndedCalls:
			if told || len(m.Calls) != 1 || m.Calls[0].Spec != spec {
				t.Errorf("it is told %+v", m)
			}
			told = true
		case *wire.Adopt:
			if adopted = true; !told || m.Outcome == nil {
				t.Errorf("it is adopted as %+v, told before: %v", m, told)
			}
		}
	}
	if !adopted {
		t.Error("it is not adopted")
	}
}

// A client that is closed tells what it has not told yet.
func TestAClosedClientTellsWhatHasEnded(t *testing.T) {
	a := newHost(t, func(*wire.TaskSpec) *direct.Outcome { return says("it") })
	a.c.straight.untimed.Store(0)
	_, hs := a.call(plain)
	wantValue(t, a.c, hs[0], "it")
	if sum, _ := a.toldEnded(); sum.Finished != 1 || sum.Opts != plain {
		t.Errorf("told are %+v", sum)
	}
}
