package sched

import (
	"errors"
	"strings"
	"testing"
	"time"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/wire"
)

func TestAmountsBoundLeases(t *testing.T) {
	for _, c := range []struct {
		name string
		node []wire.Resource
		asks []wire.Resource
		want int
	}{
		{"a task that does not say takes a CPU", res(CPU, 4000), nil, 4},
		{"halves", res(CPU, 4000), res(CPU, 500), 8},
		{"two", res(CPU, 4000), res(CPU, 2000), 2},
		{"a custom resource and the CPU unsaid", res(CPU, 4000, "disk", 2000), res("disk", 1000), 2},
		{"a custom resource alone", res(CPU, 1000, "disk", 3000), res(CPU, 0, "disk", 1000), 3},
		{"a third never sums above one", res(CPU, 1000), res(CPU, 334), 2},
		{"memory in bytes", res(CPU, 4000, Memory, 1<<30), res(Memory, 400<<20), 2},
		{"nothing", res(CPU, 1000), res(CPU, 0), 50},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, c.node...)
			k := w.task(1, 1, c.asks...)
			w.submit(k, 50)
			if got := len(w.of(k)); got != c.want {
				t.Fatalf("%d leases, want %d", got, c.want)
			}
		})
	}
}

func TestActorHoldsCPUOnlyWhileCreated(t *testing.T) {
	w := newWorld(t, res(CPU, 1000, GPU, 1000)...)
	plain := w.define(key(1, 1), wire.TaskActorCreate, nil)
	gpu := w.define(key(1, 2), wire.TaskActorCreate, res(GPU, 1000))
	whole := w.define(key(1, 3), wire.TaskActorCreate, res(CPU, 1000))
	up := func(k ClassKey) {
		t.Helper()
		if w.submit(k, 1); len(w.of(k)) == 0 {
			t.Fatalf("class %v: no lease: %s", k, w.c.Explain(k).Text)
		}
		id := w.of(k)[len(w.of(k))-1]
		w.run(id)
		w.leases[id].up, w.leases[id].busy = true, false
		w.step(ActorUp{Lease: id})
	}
	for range 100 {
		up(plain)
	}
	up(gpu)
	w.submit(gpu, 1)
	if n := len(w.of(gpu)); n != 1 {
		t.Fatalf("%d actors hold the one GPU", n)
	}
	w.giveBack(w.of(gpu)[0])
	if n := len(w.of(gpu)); n != 1 {
		t.Fatalf("the second actor has not the GPU that the first gave back (%d)", n)
	}
	id := w.of(gpu)[0]
	w.run(id)
	w.leases[id].up = true
	w.step(ActorUp{Lease: id})
	up(whole)
	w.submit(w.task(1, 4), 1)
	if n := len(w.of(key(1, 4))); n != 0 {
		t.Fatal("a task got the CPU that an actor holds for life")
	}
	// An actor's method that waits in a get lends its CPU too.
	w.block(w.of(whole)[0])
	if n := len(w.of(key(1, 4))); n != 1 {
		t.Fatal("the CPU of a blocked actor is not lent")
	}
}

// The recursion of design section 4: each task submits one and waits for it.
func TestRecursionOnOneCPU(t *testing.T) {
	w := newWorld(t, res(CPU, 1000)...)
	k := w.task(1, 1)
	var stack []ids.LeaseID
	w.submit(k, 1)
	for depth := range 10 {
		all := w.of(k)
		if len(all) != depth+1 {
			t.Fatalf("depth %d: %d leases", depth, len(all))
		}
		id := all[depth]
		w.run(id)
		stack = append(stack, id)
		if depth < 9 {
			w.block(id)
			w.submit(k, 1)
		}
	}
	for i := len(stack) - 1; i >= 0; i-- {
		w.finish(stack[i]) // and keeps the lease, idle, so that the next has to ask for it
		if i > 0 {
			w.unblock(stack[i-1])
			w.run(stack[i]) // gives it back, since it is reclaimed
			if w.leases[stack[i-1]].blocked {
				t.Fatalf("depth %d: not resumed though the CPU is free", i)
			}
		}
	}
	if w.class[k].ran != 10 {
		t.Fatalf("%d tasks ran", w.class[k].ran)
	}
}

func TestResumeComesBeforeGrantAndNeverOverdraws(t *testing.T) {
	w := newWorld(t, res(CPU, 1000)...)
	a, b := w.task(1, 1), w.task(1, 2)
	w.submit(a, 1)
	first := w.of(a)[0]
	w.run(first)
	w.block(first)
	w.submit(b, 5)
	second := w.of(b)[0]
	w.run(second)
	w.unblock(first)
	if w.leases[first].blocked == false {
		t.Fatal("two tasks run on one CPU")
	}
	if !w.leases[second].reclaimed {
		t.Fatal("a task that leaves its get waits and nothing is asked back")
	}
	w.finish(second)
	if w.leases[first].blocked {
		t.Fatal("not resumed")
	}
	if n := len(w.of(b)); n != 0 {
		t.Fatal("a new lease went before the resume")
	}
	w.finish(first)
	w.giveBack(first)
	if n := len(w.of(b)); n != 1 {
		t.Fatalf("the waiting class has %d leases", n)
	}
}

// S7: the first B runs within one slot's time of A, whatever A's backlog.
func TestBacklogDoesNotStarveAnotherClass(t *testing.T) {
	for _, jobs := range [][2]int{{1, 1}, {1, 2}} {
		w := newWorld(t, res(CPU, 2000)...)
		a, b := w.task(jobs[0], 1), w.task(jobs[1], 2)
		w.submit(a, 10_000)
		for _, id := range w.of(a) {
			w.run(id)
		}
		w.submit(b, 10_000)
		reclaimed := w.ids(func(l *held) bool { return l.reclaimed })
		if len(reclaimed) != 1 {
			t.Fatalf("%d leases are asked back, want one: both then have one", len(reclaimed))
		}
		w.finish(reclaimed[0])
		if n := len(w.of(b)); n != 1 || w.class[a].ran != 1 {
			t.Fatalf("B has %d leases after %d tasks of A", n, w.class[a].ran)
		}
		for range 100 {
			w.pass(time.Second)
		}
		if n := w.c.Counters().Reclaims; n != 1 {
			t.Fatalf("%d reclaims: equal shares must be left alone", n)
		}
	}
}

func TestMoreClassesThanSlotsTakeTurns(t *testing.T) {
	w := newWorld(t, res(CPU, 1000)...)
	var ks []ClassKey
	for i := range 5 {
		ks = append(ks, w.task(1+i%2, i))
		w.submit(ks[i], 1000)
	}
	for range 3000 {
		for _, id := range w.ids(func(l *held) bool { return !l.busy }) {
			w.run(id)
		}
		w.pass(time.Millisecond)
		for _, id := range w.ids(func(l *held) bool { return l.busy }) {
			w.finish(id)
		}
	}
	// Two jobs: half each; three classes share the first half, two the second.
	for i, k := range ks {
		want := 3000 / 2 / 3
		if i%2 == 1 {
			want = 3000 / 2 / 2
		}
		if ran := w.class[k].ran; ran < want*7/10 || ran > want*13/10 {
			t.Errorf("class %d ran %d tasks of 3000, want about %d", i, ran, want)
		}
	}
	if n := w.c.Counters().Grants; n > 3000/8 {
		t.Errorf("%d grants in 3 s: turns are shorter than the quantum", n)
	}
}

func TestOneLeaseServesManyTasks(t *testing.T) {
	w := newWorld(t, res(CPU, 2000)...)
	k := w.task(1, 1)
	for range 1000 {
		w.class[k].ready++
		for _, id := range w.of(k) { // an owner looks at its idle leases before it asks for more
			w.run(id)
		}
		w.tellWants(k)
		for _, id := range w.of(k) {
			w.run(id)
		}
		for _, id := range w.ids(func(l *held) bool { return l.busy }) {
			w.finish(id)
		}
	}
	c := w.c.Counters()
	if w.class[k].ran != 1000 || c.Requests > 10 || c.Grants > 2 {
		t.Fatalf("%d tasks took %d requests and %d grants", w.class[k].ran, c.Requests, c.Grants)
	}
}

func TestLargeDemandIsNotStarvedBySmall(t *testing.T) {
	w := newWorld(t, res(CPU, 4000)...)
	small, big := w.task(1, 1), w.task(1, 2, res(CPU, 4000)...)
	w.submit(small, 1000)
	w.submit(big, 1)
	for i := 0; len(w.of(big)) == 0; i++ {
		if i > 20 {
			t.Fatalf("never served: %s", w.c.Explain(big).Text)
		}
		for _, id := range w.of(small) {
			w.run(id)
		}
		w.pass(time.Millisecond)
		if all := w.ids(func(l *held) bool { return l.busy }); len(all) > 0 {
			w.finish(all[i%len(all)])
		}
	}
}

// A lease blocked in a get may wait for the very task that collecting resources would hold up.
func TestKeepingResourcesTogetherDoesNotDeadlock(t *testing.T) {
	w := newWorld(t, res(CPU, 4000, "r", 2000)...)
	parent, child, big := w.task(1, 1, res("r", 1000)...), w.task(1, 2, res("r", 1000)...), w.task(1, 3, res("r", 2000)...)
	w.submit(parent, 1)
	p := w.of(parent)[0]
	w.run(p)
	w.submit(big, 1)
	w.submit(child, 1)
	if len(w.of(child)) != 0 {
		t.Fatal("the large class stands in front and what it needs was given away")
	}
	w.block(p)
	if len(w.of(child)) != 1 {
		t.Fatalf("the parent waits for its child, the child for the large class, that for the parent: %s", w.c.Explain(child).Text)
	}
}

func TestInfeasibleNamesResourceAskedHeld(t *testing.T) {
	w := newWorld(t, res(CPU, 2000)...)
	k := w.task(1, 1, res(GPU, 1500)...)
	w.submit(k, 1)
	m, ok := w.log[len(w.log)-1].(Infeasible)
	if !ok || !errors.Is(m.Err, errs.ErrUnschedulable) {
		t.Fatalf("got %#v", w.log)
	}
	for _, part := range []string{"f asks 1.5 GPU", "has 0"} {
		if !strings.Contains(m.Err.Error(), part) {
			t.Errorf("%q does not say %q", m.Err, part)
		}
	}
	if e := w.c.Explain(k); e.Text != m.Err.Error() {
		t.Errorf("explain says %q", e.Text)
	}
	w.step(SetResources{Total: res(CPU, 4000)})
	if w.class[k].bad != 1 {
		t.Fatalf("the same reason is given %d times", w.class[k].bad)
	}
	w.step(SetResources{Total: res(CPU, 4000, GPU, 2000)})
	if n := len(w.of(k)); n != 1 {
		t.Fatalf("the node has the resource now, %d leases", n)
	}
}

func TestBadOptionsAreRefused(t *testing.T) {
	for _, bad := range [][]wire.Resource{
		{{Name: CPU, Amount: -1}}, {{Name: "", Amount: 1}}, {{Name: GPU, Amount: 1}, {Name: GPU, Amount: 2}},
	} {
		w := newWorld(t, res(CPU, 2000, GPU, 9000)...)
		k := w.task(1, 1, bad...)
		w.submit(k, 1)
		if m, ok := w.log[0].(Infeasible); !ok || !errors.Is(m.Err, errs.ErrInvalid) || len(w.leases) != 0 {
			t.Errorf("%v: got %#v", bad, w.log)
		}
	}
	if _, _, err := New(Config{Resources: res(CPU, 1000, CPU, 2000)}); !errors.Is(err, errs.ErrInvalid) {
		t.Errorf("a node with two amounts of CPU: %v", err)
	}
}

func TestRevokedLeaseIsReplaced(t *testing.T) {
	w := newWorld(t, res(CPU, 1000)...)
	k := w.task(1, 1)
	w.submit(k, 3)
	id := w.of(k)[0]
	w.run(id)
	w.step(WorkerGone{Worker: w.leases[id].worker, Leases: []ids.LeaseID{id, 999}, Err: errs.New(errs.CodeWorkerCrashed, "x"), Peak: 7})
	if m, ok := w.log[1].(Revoked); !ok || m.Lease != id || m.Peak != 7 || !errors.Is(m.Err, errs.ErrWorkerCrashed) {
		t.Fatalf("got %#v", w.log)
	}
	if n := w.of(k); len(n) != 1 || n[0] == id {
		t.Fatalf("leases %v after %d was revoked", n, id)
	}
}

func TestNoWorkerFailsTheClassOnce(t *testing.T) {
	w := newWorld(t, res(CPU, 2000)...)
	w.hold = true
	k := w.task(1, 1)
	w.submit(k, 5)
	if len(w.pool) != 2 {
		t.Fatalf("%d slots asked for", len(w.pool))
	}
	err := errs.New(errs.CodeRuntimeSetup, "exec: no such file")
	for _, n := range w.pool {
		w.step(NoWorker{Lease: n.Lease, Err: err})
	}
	if w.class[k].bad != 1 || len(w.c.leases) != 0 || w.c.res.free[resCPU] != 2000 {
		t.Fatalf("told %d times, %d leases, %d CPU free", w.class[k].bad, len(w.c.leases), w.c.res.free[resCPU])
	}
	w.class[k].ready = 0
	w.submit(k, 1) // and it may be tried again
	if len(w.c.leases) != 1 {
		t.Fatalf("%d leases", len(w.c.leases))
	}
}

func TestWithdrawnWantFreesWhatItWaitedWith(t *testing.T) {
	w := newWorld(t, res(CPU, 1000)...)
	w.hold = true
	a, b := w.task(1, 1), w.task(1, 2)
	w.submit(a, 1)
	w.submit(b, 1)
	late := w.pool[0]
	w.class[a].ready = 0
	w.tellWants(a)
	if len(w.pool) != 1 || w.pool[0].Lease == late.Lease {
		t.Fatalf("the pool is asked %+v", w.pool)
	}
	w.step(WorkerReady{Lease: late.Lease, Worker: 1}) // crossed the release
	if len(w.leases) != 0 {
		t.Fatal("a lease nobody wants is granted")
	}
	w.deliver()
	if len(w.of(b)) != 1 {
		t.Fatal("the other class has not got the CPU")
	}
}

// An owner sends its want when it doubles or halves, so the last want may be used up while it has more tasks; it
// is then granted more without a message.
func TestWantThatIsUsedUpGoesOn(t *testing.T) {
	t.Run("others run", func(t *testing.T) {
		w := newWorld(t, res(CPU, 16000)...)
		k := w.task(1, 1)
		w.submit(k, 8)
		w.class[k].ready += 7 // less than twice as much: not told
		if n := len(w.of(k)); n != 8 {
			t.Fatalf("%d leases for 8 told", n)
		}
		w.pass(DefaultQuantum)
		if n := len(w.of(k)); n != 12 {
			t.Fatalf("%d leases after a quantum, want half of 8 more", n)
		}
		w.class[k].ready = 0
		w.tellWants(k)
		w.pass(time.Second)
		if n := len(w.of(k)); n != 12 {
			t.Fatalf("%d leases though nothing is wanted", n)
		}
	})
	t.Run("workers start slowly", func(t *testing.T) {
		w := newWorld(t, res(CPU, 16000)...)
		k := w.task(1, 1)
		w.hold = true
		w.submit(k, 1)
		w.pass(time.Second)
		if n := len(w.pool); n != 1 {
			t.Fatalf("%d workers start for one task", n)
		}
		w.step(WorkerReady{Lease: w.pool[0].Lease, Worker: 7})
		w.pass(DefaultQuantum - 1)
		if n := len(w.pool); n != 1 {
			t.Fatalf("%d workers start before the owner could say that it has its lease", n)
		}
		w.pass(1)
		if n := len(w.pool); n != 2 {
			t.Fatalf("%d workers were asked for where the owner still wants one", n)
		}
	})
	t.Run("all are blocked", func(t *testing.T) {
		w := newWorld(t, res(CPU, 1000)...)
		k := w.task(1, 1)
		w.submit(k, 5)
		for n := range 50 { // each runs a task that submits one and waits for it: five are ready all the time
			all := w.of(k)
			if len(all) != n+1 {
				t.Fatalf("%d leases at depth %d, and all are blocked: %s", len(all), n, w.c.Explain(k).Text)
			}
			l := w.leases[all[n]]
			l.busy = true
			w.block(all[n])
		}
		if w.now != 0 {
			t.Fatal("recursion waits for a timer")
		}
	})
}

func TestDropJobEndsAllOfIt(t *testing.T) {
	w := newWorld(t, res(CPU, 4000)...)
	a, b := w.task(1, 1), w.task(2, 1, res(CPU, 4000)...)
	w.submit(a, 100)
	w.submit(b, 1)
	w.block(w.of(a)[0])
	w.unblock(w.of(a)[0])
	clear(w.leases)
	w.step(DropJob{Job: 1})
	if len(w.of(b)) != 1 || w.c.find(a) != nil || len(w.c.leases) != 1 {
		t.Fatalf("leases %v", w.leases)
	}
	w.step(DropJob{Job: 7})
}

func TestPausedStillMakesProgress(t *testing.T) {
	w := newWorld(t, res(CPU, 4000)...)
	k := w.task(1, 1)
	w.step(SetPaused{On: true})
	w.submit(k, 10)
	if n := len(w.of(k)); n != 1 {
		t.Fatalf("paused: %d leases, want one at a time", n)
	}
	w.step(SetPaused{On: false})
	if n := len(w.of(k)); n != 4 {
		t.Fatalf("no longer paused: %d leases", n)
	}
}

func TestStaleEventsAreIgnored(t *testing.T) {
	w := newWorld(t, res(CPU, 1000)...)
	for _, ev := range []Event{Return{Lease: 9}, BlockCPU{Lease: 9}, UnblockCPU{Lease: 9}, ActorUp{Lease: 9}, Want{Key: key(1, 1)},
		WorkerReady{Lease: 9}, NoWorker{Lease: 9}, WorkerGone{Leases: []ids.LeaseID{9}}, WorkerDraining{Leases: []ids.LeaseID{9}},
		OwnerRestarted{Job: 9}, Holdings{Job: 9}, Tick{}} {
		if out := w.c.Step(0, ev); len(out) != 0 {
			t.Errorf("%T: %v", ev, out)
		}
	}
	k := w.task(1, 1)
	w.submit(k, 1)
	id := w.of(k)[0]
	w.step(ActorUp{Lease: id}) // not an actor's
	w.leases[id].asked = true
	w.step(UnblockCPU{Lease: id}) // never blocked: answered at once, since the task waits
	if w.leases[id].asked {
		t.Fatal("a task that asks for a CPU it has waits for ever")
	}
}

func TestTransitionsAreClosed(t *testing.T) {
	for s := Starting; s < stateEnd; s++ {
		for tr := onWorker; tr < triggerEnd; tr++ {
			if to := transitions[s][tr]; s == Ended && to != 0 || to >= stateEnd {
				t.Errorf("%v leads to %v by %d", s, to, tr)
			}
		}
		if s != Ended && transitions[s][onEnd] != Ended {
			t.Errorf("%v cannot end", s)
		}
	}
}

func TestExplainSaysPositionAndShortage(t *testing.T) {
	w := newWorld(t, res(CPU, 2000, GPU, 1000)...)
	a, b, c := w.task(1, 1), w.task(1, 2), w.task(1, 3, res(GPU, 1000, CPU, 1000)...)
	w.submit(a, 2)
	w.submit(b, 1)
	w.submit(c, 1)
	e := w.c.Explain(c)
	if !e.Known || e.Position != 2 || e.Waiting != 2 || len(e.Missing) != 1 || e.Missing[0] != (Shortage{CPU, 1000, 0, 2000}) {
		t.Fatalf("%+v", e)
	}
	if want := "f: number 2 of 2 waiting classes; asks 1 CPU, 0 of 2 free; 0 leases held"; e.Text != want {
		t.Errorf("text %q, want %q", e.Text, want)
	}
	if e := w.c.Explain(key(5, 5)); e.Known {
		t.Errorf("an unknown class: %+v", e)
	}
}

// A home whose numbers are used up gives none of another home's: what waits fails with the reason, and what comes; leases that are held go on.
func TestAHomeWithoutNumbersRefuses(t *testing.T) {
	home := ids.Home(3)
	w := newWorld(t, res(CPU, 4000)...)
	c, _, err := New(Config{Resources: res(CPU, 4000), FirstLease: ids.LeaseID(home.ID(ids.MaxNumber - 2))})
	if err != nil {
		t.Fatal(err)
	}
	w.c = c
	k := w.task(1, 1)
	w.submit(k, 4)
	if got := w.of(k); len(got) != 2 || got[0].Home() != home || got[1].Home() != home {
		t.Fatalf("of two numbers it granted %v", got)
	}
	if err := w.class[k].err; !errors.Is(err, errs.ErrUnschedulable) || !strings.Contains(err.Error(), "home 3") || !strings.Contains(err.Error(), "new directory") {
		t.Errorf("what waits is told %v", err)
	}
	for _, l := range w.of(k) {
		w.run(l)
		w.giveBack(l)
	}
	later := w.task(2, 1)
	w.submit(later, 1)
	if n := len(w.of(later)); n != 0 || w.class[later].err == nil {
		t.Errorf("with its CPUs free it granted %d more; the class is told %v", n, w.class[later].err)
	}
}
