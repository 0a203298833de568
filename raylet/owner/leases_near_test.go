package owner

import (
	"slices"
	"testing"
	"time"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/objectstore"
	"mobula/raylet/cluster"
	"mobula/raylet/sched"
	"mobula/wire"
)

const big = 16 << 20

// elsewhere is the n-th worker of another node, which joins.
func (s *script) elsewhere(node ids.Home, n uint64) ids.ClientID {
	id := ids.ClientID(node.ID(n))
	s.step(ClientJoined{Client: id, Role: wire.RoleWorker})
	return id
}

// make has a task of its own class make a large object on a worker's node.
func (s *script) make(name string, on ids.ClientID) ids.ObjectID {
	s.t.Helper()
	spec := s.submit(&wire.TaskOptions{Func: name, NumReturns: 1})
	l := s.grant(on)
	x := s.executed(on)
	s.from(on, &wire.Seal{ID: spec.ID.Return(0), Attempt: x.Attempt, Size: big})
	s.done(on, l, x, wire.Result{Kind: wire.ResultStored, Size: big})
	return spec.ID.Return(0)
}

// pinnedOn gives the worker for which the last step has a task's arguments pinned.
func (s *script) pinnedOn(t ids.TaskID) ids.ClientID {
	s.t.Helper()
	for _, m := range told[objectstore.PinArgs](s) {
		if m.Task == t {
			return m.Worker
		}
	}
	s.t.Fatalf("no arguments of task %v are pinned", t)
	return 0
}

// Whoever chooses nodes hears where the arguments are, before what is wanted for them; where none is stored, or all are here, it hears nothing.
func TestItIsToldWhereArgumentsAre(t *testing.T) {
	s := newScript(t, Config{})
	here := s.make("here", worker)
	take := &wire.TaskOptions{Func: "take", NumReturns: 1}
	s.submit(take, wire.Arg{Ref: here})
	if got := told[cluster.Locality](s); len(got) != 0 {
		t.Fatalf("all is here, and told is %+v", got)
	}
	s.grant(worker) // nothing else waits then
	there := s.make("there", s.elsewhere(5, 1))
	s.submit(&wire.TaskOptions{Func: "both", NumReturns: 1}, wire.Arg{Ref: here}, wire.Arg{Ref: there}, wire.Arg{Ref: there})
	var order []string
	for _, e := range s.out {
		switch m := e.msg.(type) {
		case cluster.Locality:
			order = append(order, "where")
			if want := []cluster.Held{{Node: 0, Bytes: big}, {Node: 5, Bytes: 2 * big}}; !slices.Equal(m.Args, want) {
				t.Errorf("the arguments are on %+v, want %+v", m.Args, want)
			}
		case sched.Want:
			order = append(order, "want")
		}
	}
	if !slices.Equal(order, []string{"where", "want"}) {
		t.Errorf("told are %v", order)
	}
	s.submit(simple)
	if got := told[cluster.Locality](s); len(got) != 0 {
		t.Errorf("a task without arguments, and told is %+v", got)
	}
}

// Of the leases that idle the one takes a task whose node has most of its bytes, whichever has run last.
func TestATaskGoesToTheIdleLeaseNearItsArguments(t *testing.T) {
	s := newScript(t, Config{})
	far := s.elsewhere(5, 1)
	there := s.make("there", far)
	take := &wire.TaskOptions{Func: "take", NumReturns: 1}
	s.submit(take)
	s.submit(take)
	l1 := s.grant(far)
	x1 := s.executed(far)
	l2 := s.grant(worker)
	x2 := s.executed(worker)
	s.done(far, l1, x1, inline("1"))
	s.done(worker, l2, x2, inline("1")) // so the lease on the job's node idles since the shortest time
	spec := s.submit(take, wire.Arg{Ref: there})
	if w := s.pinnedOn(spec.ID); w != far {
		t.Errorf("the task goes to worker %v", w)
	}
}

// A lease takes a task from further back whose arguments are on its node; the first one is not passed over for ever.
func TestALeaseTakesTheTaskNearIt(t *testing.T) {
	s := newScript(t, Config{})
	far := s.elsewhere(5, 1)
	here, there := s.make("here", worker), s.make("there", far)
	take := &wire.TaskOptions{Func: "take", NumReturns: 1}
	first := s.submit(take, wire.Arg{Ref: there})
	var others []ids.TaskID
	for range 2 * maxNear {
		others = append(others, s.submit(take, wire.Arg{Ref: here}).ID)
	}
	l := s.grant(worker)
	for n := 0; ; n++ {
		pins := told[objectstore.PinArgs](s)
		if len(pins) != 1 {
			t.Fatalf("pinned are %+v", pins)
		}
		if pins[0].Task == first.ID {
			if n != maxNear {
				t.Errorf("%d tasks went before the first", n)
			}
			return
		}
		if !slices.Contains(others, pins[0].Task) {
			t.Fatalf("pinned are the arguments of %v", pins[0].Task)
		}
		s.step(FromStore{Msg: objectstore.ArgsPinned{Task: pins[0].Task, Attempt: pins[0].Attempt, Ask: pins[0].Ask, Values: []objectstore.PinnedValue{{ID: here}}}})
		s.done(worker, l, s.executed(worker), inline("1"))
	}
}

// A task that has to run on a node waits for no lease near its arguments: none comes.
func TestATaskOfANodeWaitsForNoOther(t *testing.T) {
	s := newScript(t, Config{})
	there := s.make("there", s.elsewhere(5, 1))
	for _, how := range []wire.Affinity{wire.AffinityHard, wire.AffinitySoft} {
		spec := s.submit(&wire.TaskOptions{Func: "take", NumReturns: 1, Affinity: how, Node: worker.Home()}, wire.Arg{Ref: there})
		s.grant(worker)
		if w := s.pinnedOn(spec.ID); w != worker {
			t.Errorf("affinity %d: the task goes to worker %v", how, w)
		}
	}
}

// A task with many bytes elsewhere waits for a lease there as long as it would take to move them, and one without arguments goes first. Where no lease came the
// next one does not wait for one, unless there is one that is busy.
func TestATaskWithManyBytesWaitsForALeaseNearThem(t *testing.T) {
	s := newScript(t, Config{LeaseSpare: time.Second})
	far := s.elsewhere(5, 1)
	there := s.make("there", far)
	take := &wire.TaskOptions{Func: "take", NumReturns: 1}
	idle := func(w ids.ClientID) ids.LeaseID { // a lease that has nothing to do
		s.submit(take)
		l := s.grant(w)
		s.done(w, l, s.executed(w), inline("1"))
		return l
	}
	l := idle(worker)
	first := s.submit(take, wire.Arg{Ref: there})
	if got := told[objectstore.PinArgs](s); len(got) != 0 {
		t.Fatalf("it goes at once to where its arguments are not: %+v", got)
	}
	if got := told[sched.Want](s); len(got) != 1 || got[0].Backlog != 1 {
		t.Errorf("wanted is %+v", got)
	}
	plain := s.submit(take)
	x := s.executed(worker)
	if x.Spec.ID != plain.ID {
		t.Fatalf("pushed is %v", x.Spec.ID)
	}
	s.done(worker, l, x, inline("1"))
	s.pass(time.Second * big / moveRate)
	if w := s.pinnedOn(first.ID); w != worker {
		t.Fatalf("it goes to worker %v", w)
	}
	s.step(FromStore{Msg: objectstore.ArgsPinned{Task: first.ID, Attempt: 1, Ask: told[objectstore.PinArgs](s)[0].Ask, Values: []objectstore.PinnedValue{{ID: there}}}})
	s.done(worker, l, s.executed(worker), inline("1"))
	second := s.submit(take, wire.Arg{Ref: there})
	if w := s.pinnedOn(second.ID); w != worker {
		t.Fatalf("the next one goes to worker %v", w)
	}
	s.step(FromStore{Msg: objectstore.ArgsPinned{Task: second.ID, Attempt: 1, Ask: told[objectstore.PinArgs](s)[0].Ask, Values: []objectstore.PinnedValue{{ID: there}}}})
	x2 := s.executed(worker)
	s.submit(take)
	lf := s.grant(far)
	busy := s.executed(far)
	s.done(worker, l, x2, inline("1"))
	third := s.submit(take, wire.Arg{Ref: there})
	if got := told[objectstore.PinArgs](s); len(got) != 0 {
		t.Fatalf("it does not wait for the busy lease there: %+v", got)
	}
	s.done(far, lf, busy, inline("1"))
	if w := s.pinnedOn(third.ID); w != far {
		t.Errorf("it goes to worker %v", w)
	}
}

// Tasks that wait for a lease near their arguments wait together: what idles meanwhile takes all of them when it is time.
func TestTasksWaitTogetherForLeasesNearThem(t *testing.T) {
	s := newScript(t, Config{LeaseSpare: time.Second})
	far := s.elsewhere(5, 1)
	there := s.make("there", far)
	take := &wire.TaskOptions{Func: "take", NumReturns: 1}
	const leases = 4
	var running [leases]ids.LeaseID
	var execs [leases]wire.ExecTask
	for i := range leases {
		s.submit(take)
		running[i] = s.grant(worker)
		execs[i] = s.executed(worker)
	}
	s.submit(take)
	s.grant(far)
	s.executed(far) // its lease is busy for all the time
	for range 2 * leases {
		s.submit(take, wire.Arg{Ref: there})
	}
	pinned := 0
	for i := range leases {
		s.done(worker, running[i], execs[i], inline("1"))
		pinned += len(told[objectstore.PinArgs](s))
	}
	if pinned != 0 {
		t.Fatalf("%d go at once to where their arguments are not", pinned)
	}
	s.pass(time.Second * big / moveRate)
	if got := told[objectstore.PinArgs](s); len(got) != leases {
		t.Errorf("after the time of a move %d go to the leases that idle, want %d", len(got), leases)
	}
}

// A number that crossed with a refusal would stand: it is taken back.
func TestWhatIsWantedIsTakenBackAfterARefusal(t *testing.T) {
	for _, code := range []errs.Code{errs.CodeUnschedulable, errs.CodeRuntimeSetup} {
		s := newScript(t, Config{})
		s.submit(simple)
		want := told[sched.Want](s)
		s.step(FromSched{sched.Infeasible{Key: want[0].Key, Err: errs.New(code, "no")}})
		if got := told[sched.Want](s); len(got) != 1 || got[0].Backlog != 0 {
			t.Errorf("%v: wanted is %+v", code, got)
		}
		s.step(FromSched{sched.Infeasible{Key: want[0].Key, Err: errs.New(code, "no")}})
		if got := told[sched.Want](s); len(got) != 0 {
			t.Errorf("%v, told again: wanted is %+v", code, got)
		}
	}
}

// A lease that a scheduler repeats to a rebuilt core, which has returned it meanwhile, is returned again: whoever is between the two may have forgotten it.
func TestALeaseThatIsRepeatedIsReturnedAgain(t *testing.T) {
	s := newScript(t, Config{})
	s.c.lenient, s.c.leases.pastLeases = true, make(map[ids.LeaseID]struct{})
	s.submit(simple)
	key := told[sched.Want](s)[0].Key
	l := s.grant(worker)
	s.done(worker, l, s.executed(worker), inline("1"))
	s.step(FromSched{sched.Reclaim{Lease: l}})
	s.step(FromSched{sched.Granted{Key: key, Lease: l, Worker: worker, Epoch: s.c.epoch}})
	if got := told[sched.Return](s); len(got) != 1 || got[0].Lease != l {
		t.Errorf("returned is %+v", got)
	}
}

// Who chooses nodes says that the node with the bytes cannot run the task: it waits for no lease there, nor do those after it.
func TestNothingWaitsForANodeThatCannotRunIt(t *testing.T) {
	s := newScript(t, Config{LeaseSpare: time.Second})
	there := s.make("there", s.elsewhere(5, 1))
	take := &wire.TaskOptions{Func: "take", NumReturns: 1}
	first := s.submit(take, wire.Arg{Ref: there})
	key := told[sched.Want](s)[0].Key
	s.grant(worker)
	if got := told[objectstore.PinArgs](s); len(got) != 0 {
		t.Fatalf("it goes at once to where its arguments are not: %+v", got)
	}
	s.step(FromSched{sched.Unable{Key: key, Nodes: []ids.Home{5}}})
	if w := s.pinnedOn(first.ID); w != worker {
		t.Fatalf("it goes to worker %v", w)
	}
	second := s.submit(take, wire.Arg{Ref: there})
	s.grant(worker2)
	if w := s.pinnedOn(second.ID); w != worker2 {
		t.Errorf("the next one goes to worker %v", w)
	}
}
