package owner

import (
	"testing"

	"mobula/internal/ids"
	"mobula/raylet/owner/task"
	"mobula/wire"
)

// What waited for an object ended, and its record is another task's by now: that one waits
// for something else and does not start when the object is there.
func TestAWaitOfATaskThatEndedIsStale(t *testing.T) {
	s := newScript(t, Config{})
	first, second := s.submit(simple), s.submit(simple)
	gone := s.submit(simple, wire.Arg{Ref: first.ID.Return(0)})
	was := s.c.tasks.task(gone.ID)
	s.from(driver, &wire.Cancel{Task: gone.ID}, &wire.Release{IDs: []ids.ObjectID{gone.ID.Return(0)}})
	s.pass(0)
	waits := s.submit(simple, wire.Arg{Ref: second.ID.Return(0)})
	if s.c.tasks.task(waits.ID) != was {
		t.Fatal("the record was not used again: the case is not what it is meant to be")
	}
	l := s.grant(worker)
	s.done(worker, l, s.executed(worker), inline("first"))
	if st := s.state(waits); st != task.PendingArgs {
		t.Errorf("the second task's dependent is %v when the first has ended", st)
	}
	s.done(worker, l, s.executed(worker), inline("second"))
	if run := s.executed(worker); run.Spec.ID != waits.ID || run.Attempt != 1 {
		t.Errorf("%v runs as attempt %d, want the dependent's first", run.Spec.ID, run.Attempt)
	}
}

// A task that was given up while its worker runs it leaves its record on the lane until the
// worker is done: until then it is not used again.
func TestARecordOnALaneIsNotUsedAgain(t *testing.T) {
	s := newScript(t, Config{})
	slow := s.spec(simple)
	slow.Deadline = s.now + 1e9
	s.from(driver, &wire.Submit{Spec: slow})
	l := s.grant(worker)
	run := s.executed(worker)
	was := s.c.tasks.task(slow.ID)
	s.from(driver, &wire.Release{IDs: []ids.ObjectID{slow.ID.Return(0)}})
	s.pass(1100e6) // past its deadline
	for range 10 {
		if spec := s.submit(simple); s.c.tasks.task(spec.ID) == was {
			t.Fatal("the record of a task that a worker still has is used again")
		}
	}
	s.done(worker, l, run, inline("late"))
}

// Lookups of many tasks are read ahead; what is found is the same.
func TestManyTasksAreFoundAndForgotten(t *testing.T) {
	w := newBenchWorld(2)
	const n = 2*prefetchMinRecords + 5
	subs := w.specs(n)
	w.step(FromClient{benchDriver, subs})
	var gets []wire.Msg
	var rel []ids.ObjectID
	for i, m := range subs {
		id := m.(*wire.Submit).Spec.ID.Return(0)
		gets = append(gets, &wire.Get{ID: id, Fetch: i%2 == 0})
		rel = append(rel, id, w.root.Put(uint32(i)), id.Task.Return(7)) // and what there is not
	}
	w.step(FromClient{benchDriver, gets})
	w.runWorker()
	answered := make(map[ids.ObjectID]int)
	for _, r := range w.res {
		answered[r.ID]++
		if string(r.Result.Value.Data) != string(benchValue.Data) {
			t.Fatalf("%v is answered by %+v", r.ID, r.Result)
		}
	}
	if len(answered) != n || len(w.res) != n {
		t.Errorf("%d answers for %d of %d tasks", len(w.res), len(answered), n)
	}
	w.step(FromClient{benchDriver, []wire.Msg{&wire.Release{IDs: rel}}})
	w.step(Timer{})
	if err := w.c.Validate(); err != nil || w.c.tasks.n != 0 {
		t.Errorf("%d tasks are left, %v", w.c.tasks.n, err)
	}
}
