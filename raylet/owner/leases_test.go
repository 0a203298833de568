package owner

import (
	"slices"
	"testing"
	"time"

	"mobula/internal/ids"
	"mobula/raylet/cluster"
	"mobula/raylet/owner/lease"
	"mobula/raylet/owner/task"
	"mobula/raylet/sched"
	"mobula/wire"
)

// A lease on which nothing is left after a task was given back goes the way of every lease that has nothing
// to do: back at once where it is asked for.
func TestALeaseThatGaveBackItsLastTaskIsReturned(t *testing.T) {
	s := newScript(t, Config{})
	spec := s.submit(simple)
	l := s.grant(worker)
	s.executed(worker)
	s.step(FromSched{sched.Reclaim{Lease: l}})
	if r := told[sched.Return](s); len(r) != 0 {
		t.Fatalf("returned while it has a task: %+v", r)
	}
	s.from(worker, &wire.Blocked{Lease: l, Returned: []ids.TaskID{spec.ID}})
	if r := told[sched.Return](s); len(r) != 1 || r[0].Lease != l {
		t.Errorf("nothing is on the lease and it stays: %+v", r)
	}
}

// A worker gives back under the lease of the task that it runs what came on its next one: the first lease's last report and the task of
// the next one have crossed. Nothing stays on a lane whose worker does not have it, whether the first lease is there still or not.
func TestATaskIsGivenBackWhateverLeaseItIsToldUnder(t *testing.T) {
	for _, over := range []bool{true, false} {
		s := newScript(t, Config{})
		first := s.submit(simple)
		l := s.grant(worker)
		s.executed(worker)
		other := s.submit(&wire.TaskOptions{Func: "other", NumReturns: 1})
		next := s.grant(worker)
		s.executed(worker)
		if over {
			s.step(FromSched{sched.Reclaim{Lease: l}})
			s.from(worker, &wire.Done{Task: first.ID, Attempt: 1, Lease: l, Results: []wire.Result{inline("1")}})
			if s.c.leases.byID[l] != nil {
				t.Fatal("the first lease is not over")
			}
		}
		s.from(worker, &wire.Blocked{Lease: l, Returned: []ids.TaskID{other.ID}})
		if got := sent[*wire.Exec](s, worker); len(got) != 1 || got[0].Lease != next || got[0].Tasks[0].Spec.ID != other.ID {
			t.Errorf("with the first lease over (%v), the task that came back is not pushed again: it is %v", over, s.state(other))
		}
		if !over {
			if h := s.c.leases.byID[l].lane.head(); h == nil || h.id() != first.ID {
				t.Error("the first lease's task is gone with it")
			}
		}
	}
}

// The task behind one that is given back is the one that runs.
func TestTheHeadOfALaneRunsAfterTheOneBeforeItWasGivenBack(t *testing.T) {
	s := newScript(t, Config{})
	quick := s.submit(simple)
	l := s.grant(worker)
	s.from(worker, &wire.Done{Task: quick.ID, Attempt: 1, Lease: l, Results: []wire.Result{inline("1")}, Times: wire.Times{Started: 1, Ended: 2}})
	a := s.submit(simple)
	b := s.submit(simple)
	s.from(worker, &wire.Blocked{Lease: l, Returned: []ids.TaskID{a.ID}})
	if h := s.c.leases.byID[l].lane.head(); h == nil || h.id() != b.ID || h.state != task.Running {
		t.Errorf("the head of the lane is %+v", h)
	}
}

// Of a worker that ended before it joined nothing is kept, whatever was granted on it.
func TestAWorkerThatNeverJoinsIsForgotten(t *testing.T) {
	const stranger ids.ClientID = 77
	s := newScript(t, Config{})
	s.submit(simple)
	l := s.grant(stranger)
	s.step(FromSched{sched.Revoked{Lease: l, Worker: stranger}})
	s.pass(s.c.cfg.SettleGrace)
	if len(s.c.leases.byID) != 0 || s.c.clients.byID[stranger] != nil {
		t.Errorf("%d leases are left, the worker's record is %+v", len(s.c.leases.byID), s.c.clients.byID[stranger])
	}
	spec := s.submit(simple)
	l = s.grant(stranger)
	s.step(FromSched{sched.Reclaim{Lease: l}})
	s.from(stranger, &wire.Blocked{Lease: l, Returned: []ids.TaskID{spec.ID}})
	s.step(ClientJoined{Client: stranger, Role: wire.RoleWorker})
	if cl := s.c.clients.byID[stranger]; cl == nil || !cl.joined {
		t.Errorf("it came after all, and is %+v", cl)
	}
}

// Whoever chooses nodes hears which leases of tasks that are to be spread have come, before what is wanted beyond them. Of others it hears
// nothing.
func TestItIsToldWhichSpreadLeasesHaveCome(t *testing.T) {
	s := newScript(t, Config{})
	s.submit(simple)
	s.grant(worker)
	if got := told[cluster.Heard](s); len(got) != 0 {
		t.Errorf("of a lease for any task it hears %v", got)
	}
	s.submit(&wire.TaskOptions{Func: "spread", NumReturns: 1, Spread: true})
	l := s.grant(worker)
	var order []any
	for _, e := range s.out {
		switch e.msg.(type) {
		case cluster.Heard, sched.Want:
			order = append(order, e.msg)
		}
	}
	if len(order) != 2 || order[0] != (cluster.Heard{Job: 1, Lease: l}) {
		t.Errorf("told are %v", order)
	}
}

// A lease that closes while its task waits in a get has given its CPU back: a scheduler that is restarted must not count it.
func TestAClosingLeaseHasGivenItsCPUBack(t *testing.T) {
	s := newScript(t, Config{})
	first, _, l := s.twoPushed()
	s.from(worker, &wire.Blocked{Task: first.ID, Lease: l})
	s.from(worker, &wire.Done{Task: first.ID, Attempt: 1, Lease: l, Results: []wire.Result{inline("x")}}) // it has not gone on
	if st := s.c.leases.byID[l].state; st != lease.Closing {
		t.Fatalf("the lease is %v", st)
	}
	s.step(FromSched{sched.Resync{Epoch: 9}})
	if h := told[sched.Holdings](s); len(h) != 1 || len(h[0].Held) != 1 || !h[0].Held[0].Blocked {
		t.Errorf("the scheduler is told of %+v", h)
	}
	s.step(FromSched{sched.Resumed{Lease: l, Ask: sched.Ask{Epoch: 3, Nth: 1}}}) // of a time before
	s.step(FromSched{sched.Resync{Epoch: 10}})
	if h := told[sched.Holdings](s); len(h) != 1 || !h[0].Held[0].Blocked {
		t.Errorf("after a late answer the scheduler is told of %+v", h)
	}
}

// Before the scheduler hears that a class wants a lease, it has back what another class has left idle: else it starts a process beside a
// worker that has nothing to do. A lease that was at work just now stays, and so does one whose next task has come in the same step.
func TestWhatIdlesGoesBackBeforeAWant(t *testing.T) {
	s := newScript(t, Config{})
	idles, next, fresh, last := newClass("idles"), newClass("next"), newClass("fresh"), newClass("last")
	ran := func(opts *wire.TaskOptions, w ids.ClientID) ids.LeaseID {
		spec := s.submit(opts)
		l := s.grant(w)
		s.ran(w, l, time.Millisecond, spec)
		return l
	}
	spare, kept := ran(idles, worker), ran(next, worker2)
	s.pass(s.c.cfg.LeaseSpare)
	a, b := s.spec(fresh), s.spec(next)
	s.from(driver, &wire.Submit{Spec: a}, &wire.Submit{Spec: b})
	s.wantPushed(worker2, b)
	var order []any
	for _, e := range s.out {
		switch m := e.msg.(type) {
		case sched.Return:
			order = append(order, m.Lease)
		case sched.Want:
			order = append(order, m.Backlog)
		}
	}
	if !slices.Equal(order, []any{spare, 1}) {
		t.Errorf("the scheduler is told of %v, want lease %v to go back before a task wants one", order, spare)
	}
	s.ran(worker2, kept, time.Millisecond, b)
	s.ran(worker, s.grant(worker), time.Millisecond, a)
	s.submit(last)
	if r := told[sched.Return](s); len(r) != 0 {
		t.Errorf("what was at work just now goes back: %+v", r)
	}
	if s.pass(s.c.cfg.LeaseSpare); len(told[sched.Return](s)) != 2 {
		t.Errorf("it stays though a task waits: %+v", told[sched.Return](s))
	}
}

func newClass(name string) *wire.TaskOptions { return &wire.TaskOptions{Func: name, NumReturns: 1} }
