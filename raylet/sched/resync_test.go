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
	if timeout.D != 10*time.Second {
		t.Fatalf("waits %v", timeout.D)
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
}
