package owner

import (
	"testing"
	"time"

	"mobula/internal/ids"
	"mobula/raylet/sched"
	"mobula/wire"
)

var spreadOpts = &wire.TaskOptions{Func: "spread", NumReturns: 1, MaxRetries: 3, Spread: true}

// awaits says of which nodes a lease of the class that is to be spread is yet to come.
func (s *script) awaits(nodes ...ids.Home) {
	s.t.Helper()
	m := sched.Awaited{Key: s.spreadKey()}
	for _, n := range nodes {
		m.Leases = append(m.Leases, sched.Placed{Node: n, N: 1})
	}
	s.step(FromSched{m})
}

func (s *script) spreadKey() sched.ClassKey {
	return sched.ClassKey{Job: 1, Class: s.c.classOf(wire.TaskNormal, spreadOpts).id}
}

// grantSpread grants a lease of that class.
func (s *script) grantSpread(w ids.ClientID) ids.LeaseID {
	s.t.Helper()
	s.lease++
	s.step(FromSched{sched.Granted{Key: s.spreadKey(), Lease: s.lease, Worker: w}})
	return s.lease
}

// spreadTasks submits tasks in one step.
func (s *script) spreadTasks(n int) {
	s.t.Helper()
	msgs := make([]wire.Msg, n)
	for i := range msgs {
		msgs[i] = &wire.Submit{Spec: s.spec(spreadOpts)}
	}
	s.from(driver, msgs...)
}

// runAll runs what the last step pushed to workers, and what that has pushed, as tasks of so long. It gives how many ran on each.
func (s *script) runAll(d time.Duration, leases map[ids.ClientID]ids.LeaseID) map[ids.ClientID]int {
	s.t.Helper()
	ran := map[ids.ClientID]int{}
	var queue []*Effect
	for {
		for i := range s.out {
			if _, ok := s.out[i].Wire.(*wire.Exec); ok && s.out[i].Kind == ToClient {
				queue = append(queue, &s.out[i])
			}
		}
		if len(queue) == 0 {
			return ran
		}
		at := queue[0].Client
		var msgs []wire.Msg
		for _, x := range queue[0].Wire.(*wire.Exec).Tasks {
			s.now += int64(d)
			msgs = append(msgs, &wire.Done{Task: x.Spec.ID, Attempt: x.Attempt, Lease: leases[at], Results: []wire.Result{inline("")},
				Times: wire.Times{Started: s.now - int64(d), Ended: s.now}})
		}
		queue = queue[1:]
		ran[at] += len(msgs)
		s.from(at, msgs...)
	}
}

// A queue of short tasks is not run by the node whose worker is up first: it gets its share, and the other node the rest, as soon as it is up.
func TestANodeThatIsUpFirstGetsItsShareOfSpreadTasks(t *testing.T) {
	s := newScript(t, Config{})
	there := s.elsewhere(5, 1)
	s.spreadTasks(100)
	s.awaits(0, 5)
	here := s.grantSpread(worker)
	leases := map[ids.ClientID]ids.LeaseID{worker: here}
	if ran := s.runAll(20*time.Microsecond, leases); ran[worker] != 50 {
		t.Fatalf("%d of 100 tasks ran on the node that is up, while one other is awaited", ran[worker])
	}
	s.pass(600 * time.Millisecond)
	if s.c.leases.byID[here] == nil {
		t.Error("the lease went back, while tasks wait")
	}
	leases[there] = s.grantSpread(there)
	if ran := s.runAll(20*time.Microsecond, leases); ran[there] != 50 || len(ran) != 1 {
		t.Errorf("of the rest ran %v", ran)
	}
}

// More tasks make the shares larger.
func TestTheShareOfSpreadTasksGrowsAsMoreCome(t *testing.T) {
	s := newScript(t, Config{})
	s.spreadTasks(10)
	s.awaits(0, 5, 6)
	leases := map[ids.ClientID]ids.LeaseID{worker: s.grantSpread(worker)}
	if ran := s.runAll(20*time.Microsecond, leases); ran[worker] != 4 {
		t.Errorf("%d of 10 tasks ran, two nodes of three are awaited", ran[worker])
	}
	s.spreadTasks(20)
	if ran := s.runAll(20*time.Microsecond, leases); ran[worker] != 6 {
		t.Errorf("%d more of 30 tasks ran", ran[worker])
	}
}

// A node that does not come up is waited for once, and for a bounded time.
func TestSpreadTasksDoNotWaitForANodeThatDoesNotComeUp(t *testing.T) {
	s := newScript(t, Config{SpreadWait: 300 * time.Millisecond})
	s.spreadTasks(10)
	s.awaits(0, 5)
	leases := map[ids.ClientID]ids.LeaseID{worker: s.grantSpread(worker)}
	before := s.runAll(20*time.Microsecond, leases)[worker]
	s.pass(301 * time.Millisecond)
	if after := s.runAll(20*time.Microsecond, leases)[worker]; before != 5 || after != 5 {
		t.Errorf("%d tasks ran before the wait was over, and %d then", before, after)
	}
	s.spreadTasks(10)
	s.awaits(0)
	s.awaits(0, 5)
	leases[worker] = s.grantSpread(worker)
	if ran := s.runAll(20*time.Microsecond, leases)[worker]; ran != 10 {
		t.Errorf("%d of 10 tasks ran at once where a node did not come up before", ran)
	}
}

// Where there are several nodes a lease without a task goes back at once: the next task has a turn of its own. On one node alone it is kept.
func TestASpreadTaskThatComesAloneIsPlacedAnew(t *testing.T) {
	for _, several := range []bool{false, true} {
		s := newScript(t, Config{})
		s.spreadTasks(1)
		if several {
			s.awaits(5)
		}
		l := s.grantSpread(worker)
		s.runAll(20*time.Microsecond, map[ids.ClientID]ids.LeaseID{worker: l})
		if kept := s.c.leases.byID[l] != nil; kept == several {
			t.Errorf("several nodes: %v, kept: %v", several, kept)
		}
	}
}

// What is pushed ahead over one lease leaves the share of nodes that had leases before, and may again.
func TestSpreadTasksAreNotAllPushedAhead(t *testing.T) {
	s := newScript(t, Config{})
	s.spreadTasks(1)
	s.awaits(0, 5)
	leases := map[ids.ClientID]ids.LeaseID{worker: s.grantSpread(worker)}
	x := s.executed(worker)
	s.spreadTasks(9)
	s.from(worker, &wire.Done{Task: x.Spec.ID, Attempt: 1, Lease: leases[worker], Results: []wire.Result{inline("")}, Times: wire.Times{Started: s.now, Ended: s.now + 1000}})
	n := 0
	for _, m := range sent[*wire.Exec](s, worker) {
		n += len(m.Tasks)
	}
	if n != 4 { // and the one that has ended is half of the ten
		t.Errorf("%d of 9 short tasks are pushed over the first lease", n)
	}
}
