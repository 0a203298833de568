package owner

import (
	"testing"

	"mobula/internal/ids"
	"mobula/objectstore"
	"mobula/raylet/owner/task"
	"mobula/raylet/sched"
	"mobula/wire"
)

// A task whose create waits lends its CPU. When it has its room the owner asks for the CPU, and the store may answer when it is there.
func TestATaskGoesOnWithItsCreateWhenItHasACPUAgain(t *testing.T) {
	s := newScript(t, Config{})
	spec := s.submit(simple)
	l := s.grant(worker)
	x := s.executed(worker)
	s.step(FromStore{Msg: objectstore.CreateWaits{Task: spec.ID, Client: worker2}})
	if b := told[sched.BlockCPU](s); len(b) != 0 {
		t.Fatalf("another attempt, which waits elsewhere, lends %+v", b)
	}
	s.step(FromStore{Msg: objectstore.CreateWaits{Task: spec.ID, Client: worker}})
	if b := told[sched.BlockCPU](s); len(b) != 1 || s.state(spec) != task.RunningInGet {
		t.Fatalf("lent: %+v, the task is %v", b, s.state(spec))
	}
	ready := objectstore.CreateReady{Task: spec.ID, Client: worker}
	for i := range 2 { // the store was rebuilt, and says it again
		s.step(FromStore{Msg: ready})
		if u, g := told[sched.UnblockCPU](s), told[objectstore.GoOn](s); len(u) != 1-i || len(g) != 0 {
			t.Fatalf("asked for %+v, the store heard %+v", u, g)
		}
	}
	s.resumed(l)
	if g := told[objectstore.GoOn](s); len(g) != 1 || g[0] != objectstore.GoOn(ready) || s.state(spec) != task.Running {
		t.Fatalf("the store heard %+v, the task is %v", g, s.state(spec))
	}
	s.done(worker, l, x, inline("v"))
	s.step(FromStore{Msg: ready})
	if g := told[objectstore.GoOn](s); len(g) != 1 {
		t.Errorf("of a task that has ended the store heard %+v", g)
	}
}

// A task that ends before it has its CPU again leaves nothing with the store.
func TestATaskThatEndsLeavesNoCreateBehind(t *testing.T) {
	s := newScript(t, Config{})
	spec := s.submit(simple)
	l := s.grant(worker)
	x := s.executed(worker)
	s.step(FromStore{Msg: objectstore.CreateWaits{Task: spec.ID, Client: worker}})
	s.step(FromStore{Msg: objectstore.CreateReady{Task: spec.ID, Client: worker}})
	s.done(worker, l, x, inline("v"))
	if g := told[objectstore.GoOn](s); len(g) != 1 {
		t.Errorf("the store heard %+v", g)
	}
}

// A core that was rebuilt learns from the store that a task has lent its CPU: its worker does not know it.
func TestRebuiltCoreGivesALenderItsCPU(t *testing.T) {
	s := newScript(t, Config{})
	spec := s.submit(simple)
	l := s.grant(worker)
	x := s.executed(worker)
	s.step(FromStore{Msg: objectstore.CreateWaits{Task: spec.ID, Client: worker}})
	s.rebuild(1)
	d, w := holds(1), holds(1)
	d.Handles = []ids.ObjectID{spec.ID.Return(0)}
	w.Tasks = []wire.Attempt{{Task: spec.ID, Attempt: x.Attempt, Lease: l}}
	s.from(driver, d)
	s.from(worker2, holds(1))
	s.from(worker, w)
	s.step(FromStore{Msg: objectstore.CreateReady{Task: spec.ID, Client: worker}})
	if u, g := told[sched.UnblockCPU](s), told[objectstore.GoOn](s); len(u) != 1 || len(g) != 0 {
		t.Fatalf("asked for %+v, the store heard %+v", u, g)
	}
	s.resumed(l)
	if g := told[objectstore.GoOn](s); len(g) != 1 {
		t.Errorf("the store heard %+v", g)
	}
}
