package cluster

import (
	"testing"
	"time"

	"mobula/internal/ids"
	"mobula/raylet/sched"
)

// closes gives the nodes on which a job is closed in a step.
func closes(es []Effect) (out []ids.Home) {
	for _, e := range es {
		if c, ok := e.(CloseJob); ok {
			out = append(out, c.Node)
		}
	}
	return out
}

// A job is not closed on a node whose store has an object of it, however long it has nothing else there, and not by a core that was rebuilt either.
func TestAJobStaysOpenWhereItsObjectsAre(t *testing.T) {
	const other ids.Home = 7
	job := ids.JobID(self.ID(1))
	c := newCore(t, CoreConfig{CloseAfter: time.Second})
	now := int64(1)
	step := func(ev Event) []Effect { return c.Step(now, ev) }
	step(NodeUp{other})
	step(Holds{Job: job, Node: other, Objects: true})
	now += int64(time.Minute)
	if got := closes(step(Timer{})); got != nil {
		t.Fatalf("it is closed on %v, which has an object", got)
	}
	step(Holds{Job: job, Node: other})
	now += int64(time.Minute)
	if got := closes(step(Timer{})); len(got) != 1 || got[0] != other {
		t.Errorf("it is closed on %v, want node %v", got, other)
	}

	var err error
	if c, err = New(CoreConfig{Config: best(), Self: self, Random: seeded(1)}); err != nil {
		t.Fatal(err)
	}
	step(Restored{Nodes: []ids.Home{5, other}, Jobs: []ids.JobID{job}, Epoch: 9})
	step(Holds{Job: job, Node: other, Objects: true})
	if got := closes(step(FromOwner{job, sched.Holdings{Job: job, Epoch: 9}})); len(got) != 1 || got[0] != 5 {
		t.Errorf("a core that was rebuilt closes the job on %v, want node 5", got)
	}
}

// saidOpen gives the nodes where a step says that a job is open, each after it was opened where it has to be.
func saidOpen(t *testing.T, es []Effect) (out []ids.Home, opens int) {
	t.Helper()
	for _, e := range es {
		switch e := e.(type) {
		case OpenJob:
			opens++
			if len(out) > 0 {
				t.Error("it is said before it is so")
			}
		case Opened:
			out = append(out, e.Node)
		}
	}
	return out, opens
}

// An owner that has objects on a node, or is to have some, hears when the job is open there: where it is being closed, when it was opened again.
func TestAnOwnerHearsWhereItsJobIsOpen(t *testing.T) {
	const other ids.Home = 7
	job := ids.JobID(self.ID(1))
	c := newCore(t, CoreConfig{CloseAfter: time.Second})
	now := int64(1)
	want := func(ev Event, said, opens int) {
		t.Helper()
		if nodes, n := saidOpen(t, c.Step(now, ev)); len(nodes) != said || n != opens {
			t.Fatalf("%T: it is told of %v, opened %d times; want %d and %d", ev, nodes, n, said, opens)
		}
	}
	holds := Holds{Job: job, Node: other, Objects: true}
	want(holds, 0, 0) // the node is not known
	want(NodeUp{other}, 0, 0)
	want(holds, 1, 1)
	want(holds, 1, 0)
	want(Holds{Job: job, Node: other}, 0, 0)
	now += int64(time.Minute)
	if got := closes(c.Step(now, Timer{})); len(got) != 1 {
		t.Fatalf("it is closed on %v", got)
	}
	want(holds, 0, 0)
	want(JobClosed{Node: other, Job: job}, 1, 1)

	want(Holds{Job: job, Node: other}, 0, 0)
	now += int64(time.Minute)
	c.Step(now, Timer{})
	want(holds, 0, 0)
	want(Holds{Job: job, Node: other}, 0, 0)
	want(JobClosed{Node: other, Job: job}, 0, 0)
}
