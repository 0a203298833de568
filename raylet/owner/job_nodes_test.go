package owner

import (
	"testing"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/wire"
)

// there is a worker of another node.
var there = ids.ClientID(ids.Home(2).ID(1))

// doubted has node 2 doubted, and tells whether the job gave up what it has there.
func (s *script) doubted() bool {
	s.t.Helper()
	s.step(NodeDoubted{Node: 2, Err: errs.New(errs.CodeWorkerCrashed, "node 2 does not answer")})
	return countKind(s.out, Abandon) == 1
}

// A task on a node that does not answer runs elsewhere at once and uncharged, and what the node says of it later counts no more.
func TestWorkOnADoubtedNodeRunsElsewhere(t *testing.T) {
	s := newScript(t, Config{})
	s.step(ClientJoined{Client: there, Role: wire.RoleWorker})
	spec := s.spec(&wire.TaskOptions{Func: "f", NumReturns: 1})
	s.from(driver, &wire.Submit{Spec: spec})
	l := s.grant(there)
	first := s.executed(there)
	if !s.doubted() {
		t.Fatal("the job gives up nothing")
	}
	s.grant(worker)
	again := s.executed(worker)
	if again.Spec.ID != spec.ID || again.Attempt != first.Attempt+1 {
		t.Fatalf("%v runs elsewhere", again.Spec.ID)
	}
	s.done(there, l, first, inline("late"))
	s.done(worker, s.lease, again, inline("right"))
	if got := s.result(spec.ID.Return(0)).Result.Value.Data; string(got) != "right" {
		t.Errorf("the result is %q", got)
	}
}

// A job with an actor on a node that does not answer waits until that node's life is over.
func TestAnActorsDoubtedNodeIsWaitedFor(t *testing.T) {
	s := newScript(t, Config{})
	s.step(ClientJoined{Client: there, Role: wire.RoleWorker})
	s.create(counter)
	l := s.grant(there)
	made := s.executed(there)
	if s.doubted() {
		t.Error("an actor that is being made there is given up")
	}
	s.done(there, l, made, inline(""))
	if s.doubted() {
		t.Error("an actor that lives there is given up")
	}
}
