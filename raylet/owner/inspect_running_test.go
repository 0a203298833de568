package owner

import "testing"

// A worker that has an actor is not idle, be there a call or not: the actor is lost with it. One that has a
// lease and no task is.
func TestAnActorWithoutACallIsRunning(t *testing.T) {
	s := newScript(t, Config{})
	a, _ := s.spawn(counter, worker)
	s.submit(simple)
	l := s.grant(worker2)
	s.done(worker2, l, s.executed(worker2), inline("x"))
	rs := s.c.Running()
	if len(rs) != 1 || rs[0].Worker != worker || rs[0].Task != a.ID || rs[0].Func != "counter" || rs[0].Retriable {
		t.Fatalf("what runs is %+v", rs)
	}
	call := s.call(a, 1)
	if rs := s.c.Running(); len(rs) != 1 || rs[0].Task != call.ID {
		t.Errorf("with a call %+v runs", rs)
	}
}
