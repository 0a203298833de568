package owner

import (
	"testing"
	"time"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/raylet/owner/task"
	"mobula/raylet/sched"
	"mobula/wire"
)

// script drives a core event by event and keeps what it asked for.
type script struct {
	t      *testing.T
	c      *Core
	now    int64
	out    []Effect
	logs   map[uint64][]byte
	cookie uint64
	root   ids.TaskID
	calls  uint64
	lease  ids.LeaseID
	seen   []Transition
	trust  bool // steps are not validated: there are many

	keepsReplaced bool           // the log has what other records have replaced, as that of a killed process may
	freed         []uint64       // records that are not needed any more
	log           func([]Effect) // a log of a step's effects in place of logs
}

const (
	driver  ids.ClientID = 1
	worker  ids.ClientID = 2
	worker2 ids.ClientID = 3
)

func newScript(t *testing.T, cfg Config) *script {
	cfg.Job = 1
	s := &script{t: t, c: New(cfg), now: 1e18, root: ids.RootTask(1, 1), logs: make(map[uint64][]byte)}
	s.step(ClientJoined{Client: driver, Role: wire.RoleDriver})
	s.step(ClientJoined{Client: worker, Role: wire.RoleWorker})
	s.step(ClientJoined{Client: worker2, Role: wire.RoleWorker})
	return s
}

// step gives the core one event; out has its effects from then on.
func (s *script) step(ev Event) {
	s.t.Helper()
	s.now += 1000
	s.out = nil
	for _, e := range s.c.Step(s.now, ev) {
		if e.Kind == LogFree && s.log == nil {
			for _, ck := range *e.Cookies {
				s.freed = append(s.freed, *ck)
			}
		}
		if e.Kind == Log && s.log == nil {
			for _, r := range *e.Records {
				s.cookie++
				s.logs[s.cookie] = append([]byte(nil), r.Bytes...)
				if old := r.Appended(s.cookie); old != 0 && !s.keepsReplaced {
					delete(s.logs, old)
				}
			}
		}
		if e.Kind == Transitions {
			s.seen = append(s.seen, *e.Changes...)
		}
		s.out = append(s.out, e)
	}
	if s.log != nil {
		s.log(s.out)
	}
	if s.trust {
		return
	}
	if err := s.c.Validate(); err != nil {
		s.t.Fatalf("after %T: %v", ev, err)
	}
}

func (s *script) from(cl ids.ClientID, msgs ...wire.Msg) {
	s.t.Helper()
	s.step(FromClient{cl, msgs})
}

// pass lets time pass and steps the timer.
func (s *script) pass(d time.Duration) {
	s.t.Helper()
	s.now += int64(d)
	s.step(Timer{})
}

func (s *script) spec(opts *wire.TaskOptions, args ...wire.Arg) *wire.TaskSpec {
	s.calls++
	return &wire.TaskSpec{ID: ids.Derive(s.root, s.calls), Parent: s.root, Opts: opts, Args: args}
}

func (s *script) submit(opts *wire.TaskOptions, args ...wire.Arg) *wire.TaskSpec {
	s.t.Helper()
	spec := s.spec(opts, args...)
	s.from(driver, &wire.Submit{Spec: spec})
	return spec
}

// grant gives a lease for the class that the core wanted last.
func (s *script) grant(w ids.ClientID) ids.LeaseID {
	s.t.Helper()
	var key sched.ClassKey
	for _, k := range s.c.classes.byID {
		if k.ready.n > 0 {
			key = sched.ClassKey{Job: 1, Class: k.id}
		}
	}
	if key == (sched.ClassKey{}) {
		s.t.Fatal("no class waits for a lease")
	}
	s.lease++
	s.step(FromSched{sched.Granted{Key: key, Lease: s.lease, Worker: w}})
	return s.lease
}

// resumed answers what the core asked last for a lease's CPU.
func (s *script) resumed(l ids.LeaseID) {
	s.t.Helper()
	s.step(FromSched{sched.Resumed{Lease: l, Ask: s.c.leases.byID[l].ask}})
}

// sent gives the messages of one type that the last step sent to a client.
func sent[M wire.Msg](s *script, cl ids.ClientID) []M {
	var out []M
	for _, e := range s.out {
		if m, ok := e.Wire.(M); ok && e.Kind == ToClient && e.Client == cl {
			out = append(out, m)
		}
	}
	return out
}

// told gives the messages of one type to store, scheduler or directory of the last step.
func told[M any](s *script) []M {
	var out []M
	for _, e := range s.out {
		if m, ok := e.msg.(M); ok {
			out = append(out, m)
		}
	}
	return out
}

// executed gives the one task pushed to a client in the last step.
func (s *script) executed(cl ids.ClientID) wire.ExecTask {
	s.t.Helper()
	ms := sent[*wire.Exec](s, cl)
	if len(ms) != 1 || len(ms[0].Tasks) != 1 {
		s.t.Fatalf("pushed to %d: %d messages", cl, len(ms))
	}
	return ms[0].Tasks[0]
}

func (s *script) done(cl ids.ClientID, l ids.LeaseID, t wire.ExecTask, res ...wire.Result) {
	s.t.Helper()
	s.from(cl, &wire.Done{Task: t.Spec.ID, Attempt: t.Attempt, Lease: l, Results: res, Times: wire.Times{Started: s.now, Ended: s.now + 5e6}})
}

func (s *script) failed(cl ids.ClientID, l ids.LeaseID, t wire.ExecTask, err *errs.Error) {
	s.t.Helper()
	s.from(cl, &wire.Done{Task: t.Spec.ID, Attempt: t.Attempt, Lease: l, Err: err})
}

// kill ends a worker: connection first, then its leases.
func (s *script) kill(cl ids.ClientID, code errs.Code, peak uint64, leases ...ids.LeaseID) {
	s.t.Helper()
	s.step(ClientGone{Client: cl})
	for _, l := range leases {
		s.step(FromSched{sched.Revoked{Lease: l, Worker: cl, Err: errs.New(code, "killed"), Peak: peak}})
	}
}

// result gets an object and gives what is answered at once.
func (s *script) result(id ids.ObjectID) *wire.Resolved {
	s.t.Helper()
	s.from(driver, &wire.Get{ID: id, Fetch: true})
	ms := sent[*wire.Resolved](s, driver)
	if len(ms) != 1 {
		s.t.Fatalf("%d answers to a get of %v, which is %v", len(ms), id, s.c.object(id))
	}
	return ms[0]
}

func (s *script) wantError(id ids.ObjectID, code errs.Code) {
	s.t.Helper()
	if r := s.result(id); r.Result.Kind != wire.ResultError || r.Result.Err.Code != code {
		s.t.Fatalf("object %v: got %+v, want an error of code %d", id, r.Result, code)
	}
}

func (s *script) state(spec *wire.TaskSpec) task.State {
	if t := s.c.tasks.task(spec.ID); t != nil {
		return t.state
	}
	return task.None
}

func inline(b string) wire.Result {
	return wire.Result{Kind: wire.ResultInline, Value: wire.Value{Data: []byte(b)}, Size: uint64(len(b))}
}

var simple = &wire.TaskOptions{Func: "simple", NumReturns: 1, MaxRetries: 3}
