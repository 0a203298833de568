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
		n.Total = append(n.Total, wire.Resource{Name: "gpu", Amount: 1000})
		n.Free = append(n.Free, wire.Resource{Name: "gpu", Amount: 1000})
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
	open, _ := opened(c.Step(2, FromOwner{job, sched.Want{Key: key, Opts: opts, Backlog: 1}}))
	if late {
		more, _ := opened(c.Step(2, NodeReport{gpu(5)}))
		open = append(open, more...)
	}
	if len(open) != 2 || open[0]+open[1] != 9 { // 4 and 5: no other has a gpu
		t.Fatalf("it is opened on %v", open)
	}
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
