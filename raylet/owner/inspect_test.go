package owner

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/internal/testkit"
	"mobula/raylet/owner/object"
	"mobula/raylet/owner/task"
	"mobula/raylet/sched"
	"mobula/wire"
)

const inspectJob = 3

func inspected(t testing.TB) (*Core, ids.TaskID) {
	t.Helper()
	c := New(Config{Job: inspectJob, InlineBudget: 1 << 40})
	c.Step(1, ClientJoined{Client: 1, Role: wire.RoleDriver})
	return c, ids.RootTask(inspectJob, 1)
}

func submitted(c *Core, root ids.TaskID, n uint64, opts *wire.TaskOptions, args ...wire.Arg) ids.TaskID {
	id := ids.Derive(root, n)
	c.Step(int64(n), FromClient{Client: 1, Msgs: []wire.Msg{&wire.Submit{Spec: &wire.TaskSpec{ID: id, Parent: root, Opts: opts, Args: args}}}})
	return id
}

var inspectOpts = &wire.TaskOptions{Func: "f", NumReturns: 1}

// What is there all the time is seen exactly once, though the core is stepped between the parts.
func TestAScanSeesWhatStaysOnce(t *testing.T) {
	testkit.Check(t, func(rt *rapid.T) {
		c, root := inspected(t)
		stay, goes := map[ids.ObjectID]bool{}, []ids.ObjectID{}
		n := uint64(0)
		add := func() ids.ObjectID {
			n++
			if n%3 == 0 {
				id := root.Put(uint32(n))
				c.Step(int64(n), FromClient{Client: 1, Msgs: []wire.Msg{&wire.PutValue{ID: id, Value: wire.Value{Data: []byte("x")}}}})
				return id
			}
			return submitted(c, root, n, inspectOpts).Return(0)
		}
		for range rapid.IntRange(0, 200).Draw(rt, "at the begin") {
			if id := add(); rapid.Bool().Draw(rt, "stays") || !id.IsPut() {
				stay[id] = true
			} else {
				goes = append(goes, id)
			}
		}
		s := c.ScanObjects(rapid.IntRange(1, 40).Draw(rt, "part"))
		defer s.Stop()
		seen := map[ids.ObjectID]int{}
		for s.NextObjects(func(v ObjectView) { seen[v.ID]++ }) {
			for range rapid.IntRange(0, 5).Draw(rt, "meanwhile") {
				add()
				if len(goes) > 0 {
					c.Step(int64(n), FromClient{Client: 1, Msgs: []wire.Msg{&wire.Release{IDs: goes[:1]}}})
					goes = goes[1:]
				}
			}
		}
		for id, k := range seen {
			if k != 1 {
				rt.Fatalf("object %v is seen %d times", id, k)
			}
		}
		for id := range stay {
			if seen[id] != 1 {
				rt.Fatalf("object %v was there all the time and is not seen", id)
			}
		}
	})
}

func TestAScanKeepsWhatIsWanted(t *testing.T) {
	c, root := inspected(t)
	first := submitted(c, root, 1, inspectOpts)
	waits := submitted(c, root, 2, inspectOpts, wire.Arg{Ref: first.Return(0)})
	s := c.ScanTasks(10)
	defer s.Stop()
	var got []ids.TaskID
	s.NextTasks(func(_ *ids.TaskID, _ int64, st task.State) bool { return st == task.PendingArgs }, func(v TaskView) { got = append(got, v.ID) })
	if len(got) != 1 || got[0] != waits {
		t.Errorf("the scan visits %v, want %v", got, waits)
	}
}

func TestAnAbandonedScanEnds(t *testing.T) {
	c, root := inspected(t)
	for n := range uint64(10) {
		submitted(c, root, n+1, inspectOpts)
	}
	s := c.ScanTasks(3)
	got := 0
	if !s.NextTasks(nil, func(TaskView) { got++ }) || got != 3 {
		t.Errorf("a part has %d tasks", got)
	}
	s.Stop()
	if s.NextTasks(nil, func(TaskView) { got++ }) || got != 3 {
		t.Error("a scan goes on after Stop")
	}
}

func TestWhy(t *testing.T) {
	c, root := inspected(t)
	first := submitted(c, root, 1, inspectOpts)
	second := submitted(c, root, 2, inspectOpts, wire.Arg{Ref: first.Return(0)})
	third := submitted(c, root, 3, inspectOpts)
	w, ok := c.WhyTask(second)
	if !ok || w.State != task.PendingArgs || len(w.Args) != 1 || w.Args[0] != (ArgWhy{first.Return(0), object.Pending}) || w.Opts.Func != "f" {
		t.Errorf("the dependent is %+v", w)
	}
	w, ok = c.WhyTask(third)
	if !ok || w.State != task.PendingNode || w.Queued != 2 || w.Ahead != 1 || w.Class.Job != inspectJob || w.Leases != 0 {
		t.Errorf("the queued is %+v", w)
	}
	o, ok := c.WhyObject(first.Return(0))
	if !ok || !o.Makes || o.Holders != 1 || len(o.Clients) != 1 || o.Clients[0] != 1 || o.Tasks != 1 || o.Waiting != 1 || o.Task.ID != first || KindOf(&o.ObjectView) != "return" {
		t.Errorf("the object is %+v", o)
	}
	c.Step(9, FromSched{Msg: sched.Infeasible{Key: w.Class, Err: errs.New(errs.CodeUnschedulable, "no TPU")}})
	if w, _ := c.WhyTask(third); w.State != task.Failed || w.Reason == nil || w.Infeasible == nil {
		t.Errorf("the infeasible is %+v", w)
	}
	if _, ok := c.WhyTask(ids.Derive(root, 99)); ok {
		t.Error("an unknown task is explained")
	}
	if _, ok := c.WhyObject(root.Put(99)); ok {
		t.Error("an unknown object is explained")
	}
	states := map[string]int{}
	c.States(func(s task.State, n int) { states[s.String()] = n })
	if fmt.Sprint(states) != "map[FAILED:3]" {
		t.Errorf("states %v", states)
	}
}

// A part of a scan holds up the owner for its length only.
func BenchmarkScanPart(b *testing.B) {
	c, root := inspected(b)
	for n := range uint64(200_000) {
		submitted(c, root, n+1, inspectOpts)
	}
	s := c.ScanTasks(1000)
	defer func() { s.Stop() }()
	for b.Loop() {
		if !s.NextTasks(func(*ids.TaskID, int64, task.State) bool { return false }, func(TaskView) {}) {
			s.Stop()
			s = c.ScanTasks(1000)
		}
	}
}

// A program may number its calls anew to actors of which the owner has no number to go on from: those that have ended, and those that it does not know.
func TestUncountedActors(t *testing.T) {
	s := newScript(t, Config{})
	lives, lease := s.spawn(counter, worker)
	s.call(lives, 1)
	s.done(worker, lease, s.executed(worker), inline("1"))
	dies, _ := s.spawn(counter, worker2)
	s.from(driver, &wire.KillActor{Actor: ids.ActorID(dies.ID)})
	far := &wire.TaskSpec{ID: ids.Derive(ids.RootTask(9, 9), 1)}
	s.call(far, 1)
	asked := []ids.ActorID{ids.ActorID(lives.ID), ids.ActorID(dies.ID), ids.ActorID(far.ID), ids.ActorID(ids.Derive(lives.ID, 77)), ids.ActorID(ids.Derive(ids.RootTask(9, 9), 2))}
	if got := s.c.Uncounted(asked); !slices.Equal(got, []int{1, 3, 4}) {
		t.Errorf("uncounted are %v", got)
	}
	again := s.call(dies, 1) // numbered anew
	s.wantError(again.ID.Return(0), errs.CodeActorDied)
	if s.rebuild(7); len(s.c.Uncounted(asked)) > 0 {
		t.Errorf("while it recovers it names %v", s.c.Uncounted(asked))
	}
}
