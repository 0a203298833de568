package owner

import (
	"fmt"
	"testing"
	"time"

	"mobula/internal/ids"
	"mobula/wire"
)

// labelled is the options of tasks that are all of one class, as those of graphs are.
func labelled(label string) *wire.TaskOptions {
	return &wire.TaskOptions{Func: "graph", NumReturns: 1, Label: label, MaxRetries: 3}
}

// submitAll submits a task of each label, in one step.
func (s *script) submitAll(of ...string) []*wire.TaskSpec {
	s.t.Helper()
	specs, msgs := make([]*wire.TaskSpec, len(of)), make([]wire.Msg, len(of))
	for i, label := range of {
		specs[i] = s.spec(labelled(label))
		msgs[i] = &wire.Submit{Spec: specs[i]}
	}
	s.from(driver, msgs...)
	return specs
}

// ran says of tasks that they have run for so long.
func (s *script) ran(cl ids.ClientID, l ids.LeaseID, d time.Duration, specs ...*wire.TaskSpec) {
	s.t.Helper()
	msgs := make([]wire.Msg, len(specs))
	for i, spec := range specs {
		msgs[i] = &wire.Done{Task: spec.ID, Attempt: 1, Lease: l, Results: []wire.Result{inline("")}, Times: wire.Times{Started: s.now, Ended: s.now + int64(d)}}
	}
	s.from(cl, msgs...)
}

func (s *script) wantPushed(cl ids.ClientID, specs ...*wire.TaskSpec) {
	s.t.Helper()
	got := s.pushed(cl)
	same := len(got) == len(specs)
	for i := range specs {
		same = same && got[i] == specs[i].ID
	}
	if !same {
		s.t.Fatalf("pushed to %d are %v, not %d tasks", cl, got, len(specs))
	}
}

// shortOnes is a script with an idle lease, over which tasks of the label "short" have been pushed that took 20 us.
func shortOnes(t *testing.T) (*script, ids.LeaseID) {
	s := newScript(t, Config{})
	first := s.submitAll("short")
	l := s.grant(worker)
	s.ran(worker, l, 20*time.Microsecond, first...)
	more := s.submitAll("short", "short", "short")
	s.wantPushed(worker, more...)
	s.ran(worker, l, 20*time.Microsecond, more...)
	return s, l
}

// That a class's tasks were short says nothing of a label that was not seen. The second one of it waits for a lease of its own.
func TestTasksOfANewLabelDoNotWaitBehindOneAnother(t *testing.T) {
	s, l := shortOnes(t)
	two := s.submitAll("new", "new")
	s.wantPushed(worker, two[0])
	s.grant(worker2)
	s.wantPushed(worker2, two[1])
	s.ran(worker, l, 20*time.Microsecond, two[0])
	more := s.submitAll("new", "new", "new")
	s.wantPushed(worker, more...) // it is known now
}

// Where one lease is lost with its worker, all waits for the other one: not behind each other.
func TestWhatRanInAWorkerThatDiedDoesNotWaitBehindItsLike(t *testing.T) {
	s, l := shortOnes(t)
	a := s.submitAll("new")
	s.wantPushed(worker, a...)
	b := s.submitAll("new")
	l2 := s.grant(worker2)
	s.wantPushed(worker2, b...)
	s.kill(worker2, 0, 0, l2)
	s.wantPushed(worker)
	s.ran(worker, l, 5*time.Second, a...)
	s.wantPushed(worker, b...)
}

// Nothing goes behind a task of a new label, however short it is itself; and of a label that is known to be long, nothing goes behind others.
func TestShortAndLongTasksDoNotWaitBehindOneAnother(t *testing.T) {
	s, l := shortOnes(t)
	mixed := s.submitAll("new", "short", "short", "new", "short")
	s.wantPushed(worker, mixed[0])
	s.ran(worker, l, time.Millisecond, mixed[0]) // the class's mean allows more
	s.wantPushed(worker, mixed[1:3]...)
	s.ran(worker, l, 20*time.Microsecond, mixed[1])
	s.wantPushed(worker)
	s.ran(worker, l, 20*time.Microsecond, mixed[2])
	s.wantPushed(worker, mixed[3])
	s.ran(worker, l, time.Millisecond, mixed[3])
	s.wantPushed(worker, mixed[4])
}

// A task of a label that is known to be short may still be long. What comes while it runs does not go behind it, whether or not its worker can tell.
func TestNothingIsPushedBehindATaskThatHasRunForLong(t *testing.T) {
	s, l := shortOnes(t)
	long := s.submitAll("short")
	s.wantPushed(worker, long...)
	soon := s.submitAll("short")
	s.wantPushed(worker, soon...)
	s.pass(10 * time.Millisecond)
	late := s.submitAll("short")
	s.wantPushed(worker)
	l2 := s.grant(worker2)
	s.wantPushed(worker2, late...)
	s.ran(worker2, l2, 20*time.Microsecond, late...)
	s.ran(worker, l, 5*time.Second, long...)
	s.ran(worker, l, 20*time.Microsecond, soon...)
}

// Where each task has a label of its own, labels tell nothing, and the class does.
func TestWhereAllLabelsAreNewTheClassTells(t *testing.T) {
	s, l := shortOnes(t)
	s.trust = true
	for i := range 2 * maxLabels {
		s.ran(worker, l, 20*time.Microsecond, s.submitAll(fmt.Sprint("x", i))...)
	}
	s.trust = false
	k := s.c.classOf(wire.TaskNormal, labelled("x"))
	if n := len(k.labels.seen); n > maxLabels {
		t.Errorf("%d labels are remembered", n)
	}
	s.wantPushed(worker)
	more := s.submitAll("y0", "y1", "y2")
	s.wantPushed(worker, more...)
}
