package sched

import (
	"testing"
	"time"

	"mobula/internal/ids"
	"mobula/wire"
)

func TestRestartedOwnerIsToldOfItsLeases(t *testing.T) {
	w := newWorld(t, res(CPU, 2000)...)
	k := w.task(1, 1)
	act := w.define(key(1, 2), wire.TaskActorCreate, nil)
	w.submit(act, 1)
	w.step(ActorUp{Lease: w.of(act)[0]})
	w.submit(k, 9)
	w.block(w.of(k)[0]) // a third lease takes its CPU
	before := len(w.leases)
	clear(w.leases)
	w.log = nil
	for _, cl := range w.class {
		cl.ready, cl.told = 0, 0
	}
	w.step(OwnerRestarted{Job: 1, Epoch: 9})
	if before != 4 || len(w.leases) != before {
		t.Fatalf("%d leases told, held %d", len(w.leases), before)
	}
	up, blocked := 0, 0
	for _, m := range w.log {
		if g, ok := m.(Granted); ok && g.Epoch != 9 {
			t.Errorf("told with epoch %d, not the one of the restart", g.Epoch)
		}
		if g, ok := m.(Granted); ok && g.Up {
			up++
		} else if ok && g.Blocked {
			blocked++
		}
	}
	if up != 1 || blocked != 1 {
		t.Fatalf("%d up, %d blocked in %+v", up, blocked, w.log)
	}
	w.giveBack(w.of(k)[1])
	if len(w.leases) != before-1 {
		t.Fatal("a want from before the restart is still served")
	}
}

func TestResyncEndsWithoutTheOwnersThatDoNotAnswer(t *testing.T) {
	c, out, err := New(Config{Resources: res(CPU, 1000), Jobs: []ids.JobID{1, 2, 3}, Epoch: 2, FirstLease: 50})
	if err != nil || len(out) != 4 {
		t.Fatalf("%v %v", out, err)
	}
	timeout := out[3].(After)
	if timeout.D <= 10*time.Second {
		t.Fatalf("waits %v, no longer than an owner for its clients", timeout.D)
	}
	has := func(out []Effect) (n int) {
		for _, e := range out {
			if n2, ok := e.(NeedWorker); ok && n2.Lease > 50 {
				n++
			}
		}
		return n
	}
	want := Want{Key: key(1, 1), Opts: &wire.TaskOptions{}, Backlog: 1}
	if has(c.Step(1, Holdings{Job: 1, Epoch: 2, Wants: []Want{want}})) != 0 {
		t.Fatal("granted too soon")
	}
	if has(c.Step(2, DropJob{Job: 2})) != 0 {
		t.Fatal("granted before job 3 answered")
	}
	if has(c.Step(3, timeout.Ev)) != 1 {
		t.Fatal("waits for ever for an owner that is silent")
	}
	late := Held{Lease: 7, Key: key(3, 1), Opts: &wire.TaskOptions{}, Worker: 5, Blocked: true}
	for range 2 { // it was not reached for a while: its leases are what they were, and taken over once
		for _, e := range c.Step(4, Holdings{Job: 3, Epoch: 2, Held: []Held{late}}) {
			if a, ok := e.(AdoptLease); !ok || a.Lease != late.Lease {
				t.Errorf("a late answer gives %T%+v", e, e)
			}
		}
	}
	if l := c.leases[late.Lease]; l == nil || l.state != Blocked {
		t.Errorf("the lease of an owner that answered late is %+v", l)
	}
}

// An owner that is restarted while it is asked waits for its clients before it answers: it is waited for as long again.
func TestResyncWaitsForAnOwnerThatIsRestarted(t *testing.T) {
	c, out, err := New(Config{Resources: res(CPU, 1000), Jobs: []ids.JobID{1, 2}, Epoch: 2, FirstLease: 50})
	if err != nil || len(out) != 3 {
		t.Fatalf("%v %v", out, err)
	}
	first := out[2].(After)
	out = c.Step(1, OwnerRestarted{Job: 1, Epoch: 9})
	if len(out) != 1 {
		t.Fatalf("a restart gives %v", out)
	}
	second := out[0].(After)
	c.Step(2, Holdings{Job: 2, Epoch: 2})
	if out := c.Step(3, first.Ev); len(out) != 0 {
		t.Fatalf("before the owner has had its time: %v", out)
	}
	if out := c.Step(4, OwnerRestarted{Job: 2, Epoch: 10}); len(out) != 0 { // which has answered
		t.Fatalf("a restart of an owner that has answered gives %v", out)
	}
	c.Step(5, Want{Key: key(2, 1), Opts: &wire.TaskOptions{}, Backlog: 1})
	if out := c.Step(6, second.Ev); len(out) == 0 || second.D != first.D {
		t.Errorf("waits for ever, or %v", second.D)
	}
}

// An owner that is lost just after it has answered is rebuilt with the question in hand, and answers once more, with all that it wants.
func TestAnOwnerAnswersAgain(t *testing.T) {
	c, _, err := New(Config{Resources: res(CPU, 2000), Jobs: []ids.JobID{1}, Epoch: 2, FirstLease: 50})
	if err != nil {
		t.Fatal(err)
	}
	opts := &wire.TaskOptions{}
	held := []Held{{Lease: 8, Key: key(1, 1), Opts: opts, Worker: 5}}
	want := Want{Key: key(1, 2), Opts: opts, Backlog: 1}
	c.Step(1, Holdings{Job: 1, Epoch: 2, Held: held})
	c.Step(2, OwnerRestarted{Job: 1, Epoch: 9})
	asked := func(ev Holdings) (n int) {
		for _, e := range c.Step(3, ev) {
			if _, ok := e.(NeedWorker); ok {
				n++
			}
		}
		return n
	}
	if n := asked(Holdings{Job: 1, Epoch: 1, Wants: []Want{want}}); n != 0 {
		t.Errorf("an answer to the core before gets %d leases", n)
	}
	if n := asked(Holdings{Job: 1, Epoch: 2, Held: append(held, Held{Lease: 9, Key: key(1, 1), Opts: opts, Worker: 5}), Wants: []Want{want}}); n != 1 {
		t.Errorf("what is wanted in the second answer gets %d leases", n)
	}
	if c.leases[9] != nil {
		t.Error("a lease that the first answer did not name is taken over")
	}
	if err := c.Validate(); err != nil {
		t.Error(err)
	}
}

// An UnblockCPU that the scheduler knows of already, from its owner's Holdings, is answered once, and by its number.
func TestAnUnblockIsAnsweredOnce(t *testing.T) {
	c, _, err := New(Config{Resources: res(CPU, 1000), Jobs: []ids.JobID{1}, Epoch: 2, FirstLease: 50})
	if err != nil {
		t.Fatal(err)
	}
	opts, ask := &wire.TaskOptions{}, Ask{Epoch: 7, Nth: 3}
	c.Step(1, Holdings{Job: 1, Epoch: 2, Held: []Held{
		{Lease: 8, Key: key(1, 1), Opts: opts, Worker: 5},
		{Lease: 9, Key: key(1, 1), Opts: opts, Worker: 5, Blocked: true, Ask: ask},
	}})
	c.Step(2, UnblockCPU{Lease: 9, Ask: ask})
	var answers []Resumed
	for _, e := range c.Step(3, Return{Lease: 8}) {
		if m, ok := e.(ToOwner); ok {
			if r, ok := m.Msg.(Resumed); ok {
				answers = append(answers, r)
			}
		}
	}
	if len(answers) != 1 || answers[0] != (Resumed{Lease: 9, Ask: ask}) {
		t.Errorf("answered by %+v", answers)
	}
}
