package cluster

import (
	"slices"
	"testing"

	"mobula/internal/ids"
	"mobula/raylet/sched"
	"mobula/wire"
)

// opened and closed are where the effects have a job opened and closed.
func opened(out []Effect) (open, closed []ids.Home) {
	for _, e := range out {
		switch e := e.(type) {
		case OpenJob:
			open = append(open, e.Node)
		case CloseJob:
			closed = append(closed, e.Node)
		}
	}
	slices.Sort(closed)
	return open, closed
}

// namedAt is where the effects have a class named that is not wanted there yet.
func namedAt(out []Effect) (at []ids.Home) {
	for _, e := range out {
		if to, ok := e.(ToScheduler); ok {
			if w, ok := to.Event.(sched.Want); ok && w.Backlog == 0 && w.Opts != nil {
				at = append(at, to.Node)
			}
		}
	}
	return at
}

// A job with work on one other node is opened on a second one, from where it goes on when the first one dies; both are closed together.
func TestASecondNodeStandsBy(t *testing.T) {
	for _, late := range []bool{false, true} { // the second node is heard of when the first one has the work
		secondNode(t, late)
	}
}

func secondNode(t *testing.T, late bool) {
	t.Helper()
	c := newCore(t, CoreConfig{})
	job := ids.JobID(self.ID(1))
	gpu := func(id ids.Home) Node {
		n := node(id, 10)
		n.Total = append(n.Total, wire.Resource{Name: "gpu", Amount: 4000})
		n.Free = append(n.Free, wire.Resource{Name: "gpu", Amount: 4000})
		return n
	}
	for _, ev := range []Event{NodeReport{node(self, 10)}, NodeUp{4}, NodeUp{5}, NodeUp{6}, NodeReport{gpu(4)}, NodeReport{node(6, 10)}} {
		c.Step(1, ev)
	}
	if !late {
		c.Step(1, NodeReport{gpu(5)})
	}
	key := sched.ClassKey{Job: job, Class: 1}
	opts := &wire.TaskOptions{Func: "f", Resources: []wire.Resource{{Name: "gpu", Amount: 1000}}}
	out := slices.Clone(c.Step(2, FromOwner{job, sched.Want{Key: key, Opts: opts, Backlog: 1}}))
	if late {
		out = append(out, c.Step(2, NodeReport{gpu(5)})...)
	}
	open, _ := opened(out)
	if len(open) != 2 || open[0]+open[1] != 9 { // 4 and 5: no other has a gpu
		t.Fatalf("it is opened on %v", open)
	}
	if at := namedAt(out); !slices.Equal(at, open[1:]) {
		t.Errorf("the class is named at %v, opened on %v", at, open)
	}
	full := gpu(open[1])
	full.Free[len(full.Free)-1].Amount = 0
	c.Step(2, NodeReport{full}) // else the second class would be wanted there
	if at := namedAt(c.Step(2, FromOwner{job, sched.Want{Key: sched.ClassKey{Job: job, Class: 2}, Opts: opts, Backlog: 1}})); !slices.Equal(at, open[1:]) {
		t.Errorf("a second class is named at %v", at)
	}
	if at := namedAt(c.Step(2, FromOwner{job, sched.Want{Key: key, Opts: opts, Backlog: 5}})); len(at) != 0 {
		t.Errorf("a class is named again at %v", at)
	}
	c.Step(2, FromOwner{job, sched.Want{Key: sched.ClassKey{Job: job, Class: 2}, Opts: opts}})
	c.Step(2, FromOwner{job, sched.Want{Key: key, Opts: opts, Backlog: 1}})
	lease := ids.LeaseID(open[0].ID(1))
	c.Step(3, FromScheduler{open[0], job, sched.Granted{Key: key, Lease: lease}})
	after := int64(2 * DefaultCloseAfter)
	if _, closed := opened(c.Step(after, Timer{})); len(closed) != 0 {
		t.Fatalf("while it runs, it is closed on %v", closed)
	}
	c.Step(after, FromOwner{job, sched.Return{Lease: lease}})
	c.Step(after, FromOwner{job, sched.Want{Key: key, Opts: opts}})
	if _, closed := opened(c.Step(2*after, Timer{})); !slices.Equal(closed, []ids.Home{4, 5}) {
		t.Errorf("when nothing is left it is closed on %v", closed)
	}
	if err := c.validate(); err != nil {
		t.Fatal(err)
	}
}
