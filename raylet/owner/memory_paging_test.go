package owner

import (
	"slices"
	"testing"
	"time"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/objectstore"
	"mobula/raylet/owner/task"
	"mobula/raylet/sched"
	"mobula/wire"
)

// How many tasks with large inline arguments the tests of this file queue, under what budget.
const (
	manyTasks   = 100
	largeValue  = 100 << 10
	smallBudget = 1 << 20
)

// pages is a script with many queued tasks, each with a large inline value of its own as the last argument.
type pages struct {
	*script
	specs []*wire.TaskSpec
}

func newPages(t *testing.T, opts *wire.TaskOptions, change func(*script, *wire.TaskSpec)) *pages {
	t.Helper()
	p := &pages{script: newScript(t, Config{InlineBudget: smallBudget, Transitions: true})}
	for i := range manyTasks {
		spec := p.spec(opts, wire.Arg{Value: wire.Value{Data: slices.Repeat([]byte{byte(i)}, largeValue)}})
		if change != nil {
			change(p.script, spec)
		}
		p.specs = append(p.specs, spec)
		p.from(driver, &wire.Submit{Spec: spec})
	}
	p.from(driver, &wire.Unget{}) // the log has told the last one's position only now
	p.wantWithinBudget()
	return p
}

func (p *pages) wantWithinBudget() {
	p.t.Helper()
	if n := p.c.budget.specs; n > smallBudget {
		p.t.Fatalf("%d bytes of specs are in memory, the budget is %d", n, smallBudget)
	}
}

// runAll runs all that is queued on one worker, which wants each task's own value.
func (p *pages) runAll(results ...wire.Result) {
	p.t.Helper()
	l := p.grant(worker)
	var asked []Effect
	for ran := 0; ran < manyTasks; {
		for _, e := range p.out {
			if e.Kind == Fetch {
				asked = append(asked, e)
			}
		}
		var dones []wire.Msg
		for _, m := range sent[*wire.Exec](p.script, worker) {
			for _, x := range m.Tasks {
				args, want := x.Spec.Args, p.specs[ran]
				if v := args[len(args)-1].Value.Data; x.Spec.ID != want.ID || len(v) != largeValue || v[0] != byte(ran) {
					p.t.Fatalf("the task %d in line is %v with a value of %d bytes", ran, x.Spec.ID, len(v))
				}
				ran++
				if len(results) > 0 && results[0].Kind == wire.ResultStored {
					dones = append(dones, &wire.Seal{ID: x.Spec.ID.Return(0), Attempt: x.Attempt, Size: 8})
				}
				dones = append(dones, &wire.Done{Task: x.Spec.ID, Attempt: x.Attempt, Lease: l, Results: results, Times: wire.Times{Started: 1, Ended: 2}})
			}
		}
		p.wantWithinBudget()
		switch {
		case len(dones) > 0:
			p.from(worker, dones...)
		case len(asked) > 0:
			e := asked[0]
			asked = asked[1:]
			p.step(Fetched{Token: e.Token, Record: p.logs[e.Position()]})
		default:
			p.t.Fatalf("after %d tasks nothing goes on", ran)
		}
	}
}

// A record that is to be read back is read where it is by then: an effect of the same step may have moved it.
func TestARecordThatMovesIsReadWhereItIs(t *testing.T) {
	p := newPages(t, simple, nil)
	p.runUntilRead()
	ask := &p.out[slices.IndexFunc(p.out, isFetch)]
	const moved = 1 << 40
	*p.c.Relocate(ask.Position(), p.logs[ask.Position()]) = moved
	if at := ask.Position(); at != moved {
		t.Errorf("the record is looked for at %#x", at)
	}
}

// A lease waits for a spec that is read back, and goes back like any other if another lease gets the task, or none does.
func TestALeaseThatWaitedForASpecGoesBack(t *testing.T) {
	p := newPages(t, simple, nil)
	l := p.runUntilRead()
	p.pass(time.Hour)
	if ret := told[sched.Return](p.script); len(ret) != 0 {
		t.Fatalf("%v go back while the spec of the next task is read", ret)
	}
	var cancels []wire.Msg
	for _, spec := range p.specs {
		cancels = append(cancels, &wire.Cancel{Task: spec.ID})
	}
	p.from(driver, cancels...)
	if ret := told[sched.Return](p.script); len(ret) == 0 {
		p.pass(time.Hour)
	}
	if ret := told[sched.Return](p.script); len(ret) != 1 || ret[0].Lease != l {
		t.Errorf("%v go back, want the lease %v", ret, l)
	}
}

// runUntilRead runs tasks on a lease until the next one's spec has to be read back.
func (p *pages) runUntilRead() ids.LeaseID {
	p.t.Helper()
	l := p.grant(worker)
	asks := func() int { return slices.IndexFunc(p.out, isFetch) }
	for asks() < 0 {
		var dones []wire.Msg
		for _, m := range sent[*wire.Exec](p.script, worker) {
			for _, x := range m.Tasks {
				dones = append(dones, &wire.Done{Task: x.Spec.ID, Attempt: x.Attempt, Lease: l, Results: []wire.Result{inline("")}})
			}
		}
		if len(dones) == 0 {
			p.t.Fatal("nothing is read back")
		}
		p.from(worker, dones...)
	}
	return l
}

// Whatever else a spec says, its inline values leave memory while it is queued, and are there when it runs.
func TestLargeQueuedSpecsStayWithinTheBudget(t *testing.T) {
	stream := &wire.TaskOptions{Func: "stream", NumReturns: wire.Streaming}
	for name, c := range map[string]struct {
		opts    *wire.TaskOptions
		change  func(*script, *wire.TaskSpec)
		results []wire.Result
	}{
		"nothing":            {simple, nil, []wire.Result{inline("")}},
		"deadline":           {simple, inAnHour, []wire.Result{inline("")}},
		"reference":          {simple, refersToPut, []wire.Result{inline("")}},
		"reference in value": {simple, containsPut, []wire.Result{inline("")}},
		"stream":             {stream, nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPages(t, c.opts, c.change)
			p.runAll(c.results...)
		})
	}
}

func inAnHour(s *script, spec *wire.TaskSpec) { spec.Deadline = s.now + int64(time.Hour) }

// refersToPut has a task use an object that the driver holds.
func refersToPut(s *script, spec *wire.TaskSpec) {
	spec.Args = slices.Insert(spec.Args, 0, wire.Arg{Ref: s.heldPut()})
}

func containsPut(s *script, spec *wire.TaskSpec) {
	spec.Args[0].Value.Refs = []ids.ObjectID{s.heldPut()}
}

func (s *script) heldPut() ids.ObjectID {
	id := s.root.Put(1)
	if s.c.object(id) == nil {
		s.from(driver, &wire.PutValue{ID: id, Value: wire.Value{Data: []byte("put")}})
	}
	return id
}

// A deadline fires while the spec of its task is in the log alone, and all is told of the task's end.
func TestADeadlineFiresWhileItsSpecIsPagedOut(t *testing.T) {
	for name, change := range map[string]func(*script, *wire.TaskSpec){
		"whole":  inAnHour,
		"values": func(s *script, spec *wire.TaskSpec) { inAnHour(s, spec); refersToPut(s, spec) },
	} {
		t.Run(name, func(t *testing.T) {
			p := newPages(t, simple, change)
			out := p.pagedOutTask()
			p.seen = nil
			p.pass(2 * time.Hour)
			for _, spec := range p.specs {
				p.wantError(spec.ID.Return(0), errs.CodeDeadline)
			}
			if !slices.ContainsFunc(p.seen, func(ch Transition) bool { return ch.Spec.ID == out.ID && ch.State == task.Failed }) {
				t.Error("nobody is told of its end")
			}
			p.letAllGo()
		})
	}
}

// pagedOutTask is one in the middle of the line, whose spec is not in memory.
func (p *pages) pagedOutTask() *wire.TaskSpec {
	p.t.Helper()
	spec := p.specs[manyTasks/2]
	if !p.c.tasks.task(spec.ID).pagedOut() {
		p.t.Fatal("the spec of the one in the middle is in memory")
	}
	return spec
}

// letAllGo releases all that the driver holds: nothing is left then.
func (p *pages) letAllGo() {
	p.t.Helper()
	rel := &wire.Release{IDs: []ids.ObjectID{p.root.Put(1)}}
	for _, spec := range p.specs {
		rel.IDs = append(rel.IDs, spec.ID.Return(0))
	}
	p.from(driver, rel)
	p.wantEmpty()
	if n := p.c.budget.specs; n != 0 {
		p.t.Errorf("%d bytes of specs are counted of no task", n)
	}
}

// A cancel reaches a task whose spec is in the log alone, also while that is read back.
func TestATaskIsCancelledWhileItsSpecIsPagedOut(t *testing.T) {
	for name, change := range map[string]func(*script, *wire.TaskSpec){"whole": inAnHour, "values": refersToPut} {
		t.Run(name, func(t *testing.T) {
			p := newPages(t, simple, change)
			out := p.pagedOutTask()
			p.from(driver, &wire.Cancel{Task: out.ID})
			p.wantError(out.ID.Return(0), errs.CodeCancelled)
			for _, spec := range p.specs[:4] { // up to one whose spec is not in memory
				p.from(driver, &wire.Cancel{Task: spec.ID})
			}
			p.grant(worker)
			reads := slices.Clone(p.out)
			for _, spec := range p.specs[4:] {
				p.from(driver, &wire.Cancel{Task: spec.ID, Force: true})
			}
			if !slices.ContainsFunc(reads, isFetch) {
				t.Error("nothing is read back for the lease")
			}
			for _, e := range reads {
				if e.Kind == Fetch {
					p.step(Fetched{Token: e.Token, Record: p.logs[e.Position()]})
				}
			}
			for _, spec := range p.specs {
				p.wantError(spec.ID.Return(0), errs.CodeCancelled)
			}
			p.letAllGo()
		})
	}
}

// A core that is rebuilt while specs are in the log alone has them all, within the budget, and their deadlines.
func TestPagedOutSpecsAreThereAfterARebuild(t *testing.T) {
	for name, change := range map[string]func(*script, *wire.TaskSpec){
		"whole":  inAnHour,
		"values": func(s *script, spec *wire.TaskSpec) { inAnHour(s, spec); refersToPut(s, spec) },
	} {
		for _, late := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				p := newPages(t, simple, change)
				p.pagedOutTask()
				p.rebuild(7)
				p.c.cfg.InlineBudget = smallBudget
				h := holds(7)
				h.Handles = []ids.ObjectID{p.root.Put(1)}
				for _, spec := range p.specs {
					h.Handles = append(h.Handles, spec.ID.Return(0))
				}
				p.from(driver, h)
				p.from(worker, holds(7))
				p.from(worker2, holds(7))
				p.wantWithinBudget()
				p.pagedOutTask()
				if late {
					p.pass(2 * time.Hour)
					for _, spec := range p.specs {
						p.wantError(spec.ID.Return(0), errs.CodeDeadline)
					}
				} else {
					p.runAll(inline(""))
				}
				p.letAllGo()
			})
		}
	}
}

// The values of tasks that wait for another's result leave memory too.
func TestLargeSpecsThatWaitForArgumentsStayWithinTheBudget(t *testing.T) {
	var slow *wire.TaskSpec
	p := newPages(t, simple, func(s *script, spec *wire.TaskSpec) {
		if slow == nil {
			slow = s.submit(&wire.TaskOptions{Func: "slow", NumReturns: 1})
		}
		spec.Args = slices.Insert(spec.Args, 0, wire.Arg{Ref: slow.ID.Return(0)})
	})
	l := p.grant(worker2)
	p.done(worker2, l, p.executed(worker2), inline("now"))
	p.runAll(inline(""))
	p.from(driver, &wire.Release{IDs: []ids.ObjectID{slow.ID.Return(0)}})
	p.letAllGo()
}

// What is kept to make lost objects again is in the log as well. It is read back where it is needed, and counts in full where lineage is bounded.
func TestLineageStaysWithinTheBudget(t *testing.T) {
	p := newPages(t, simple, refersToPut)
	p.runAll(stored())
	if n := p.c.lineage.bytes; n < manyTasks*largeValue {
		t.Errorf("the lineage of %d tasks counts %d bytes", manyTasks, n)
	}
	lost := p.specs[manyTasks/2]
	p.step(FromStore{Msg: objectstore.Lost{ID: lost.ID.Return(0), Err: errs.New(errs.CodeObjectLost, "gone")}})
	out := p.out
	for _, e := range out {
		if e.Kind == Fetch {
			p.step(Fetched{Token: e.Token, Record: p.logs[e.Position()]})
		}
	}
	x := p.executed(worker)
	if v := x.Spec.Args[1].Value.Data; x.Spec.ID != lost.ID || len(v) != largeValue || v[0] != manyTasks/2 {
		t.Errorf("%v runs with a value of %d bytes, want %v", x.Spec.ID, len(v), lost.ID)
	}
	p.from(worker, &wire.Seal{ID: lost.ID.Return(0), Attempt: x.Attempt, Size: 8},
		&wire.Done{Task: lost.ID, Attempt: x.Attempt, Lease: p.lease, Results: []wire.Result{stored()}, Times: wire.Times{Started: 1, Ended: 2}})
	p.letAllGo()
	if n := p.c.lineage.bytes; n != 0 {
		t.Errorf("lineage counts %d bytes of no task", n)
	}
}

// Of a call that has ended the arguments go, though somebody has its result.
func TestACallThatHasEndedKeepsNoArguments(t *testing.T) {
	s := newScript(t, Config{})
	a, l := s.spawn(&wire.TaskOptions{Func: "actor", NumReturns: 1}, worker)
	for i := range uint64(10) {
		call := s.call(a, i+1, wire.Arg{Ref: s.heldPut()}, wire.Arg{Value: wire.Value{Data: make([]byte, largeValue)}})
		x := s.executed(worker)
		if len(x.Spec.Args) != 2 || len(x.Spec.Args[1].Value.Data) != largeValue {
			t.Fatalf("the actor gets %d arguments", len(x.Spec.Args))
		}
		s.done(worker, l, x, inline("result"))
		if r := s.result(call.ID.Return(0)); string(r.Result.Value.Data) != "result" {
			t.Errorf("its result is %+v", r.Result)
		}
	}
	if n := s.c.budget.specs; n >= largeValue {
		t.Errorf("%d bytes of specs are in memory, of calls that have ended", n)
	}
}

// Calls that wait for their actor stay within the budget, and run in order with all of their arguments.
func TestLargeCallsStayWithinTheBudget(t *testing.T) {
	p := &pages{script: newScript(t, Config{InlineBudget: smallBudget, ActorWindow: 2})}
	a := p.create(&wire.TaskOptions{Func: "actor", NumReturns: 1})
	for i := range manyTasks {
		args := []wire.Arg{{Ref: p.heldPut()}, {Value: wire.Value{Data: slices.Repeat([]byte{byte(i)}, largeValue)}}}
		p.specs = append(p.specs, p.callSpec(a, uint64(i+1), args[i%2:]...)) // some refer to an object
		p.from(driver, &wire.Submit{Spec: p.specs[i]})
	}
	for _, cancelled := range []int{manyTasks / 2, manyTasks - 2} {
		p.from(driver, &wire.Cancel{Task: p.specs[cancelled].ID})
		p.wantError(p.specs[cancelled].ID.Return(0), errs.CodeCancelled)
		p.specs = slices.Delete(p.specs, cancelled, cancelled+1)
	}
	p.wantWithinBudget()
	l := p.grant(worker)
	p.done(worker, l, p.executed(worker), inline(""))
	var asked []Effect
	for ran := 0; ran < len(p.specs); {
		for _, e := range p.out {
			if e.Kind == Fetch {
				asked = append(asked, e)
			}
		}
		var dones []wire.Msg
		for _, m := range sent[*wire.Exec](p.script, worker) {
			for _, x := range m.Tasks {
				args, want := x.Spec.Args, p.specs[ran]
				if v := args[len(args)-1].Value.Data; x.Spec.ID != want.ID || len(v) != largeValue || uint64(v[0])+1 != want.Seq {
					t.Fatalf("the call %d in line is %v, %d with a value of %d bytes", ran, x.Spec.ID, x.Spec.Seq, len(v))
				}
				ran++
				dones = append(dones, &wire.Done{Task: x.Spec.ID, Attempt: x.Attempt, Lease: l, Results: []wire.Result{inline("")}, Times: wire.Times{Started: 1, Ended: 2}})
			}
		}
		p.wantWithinBudget()
		switch {
		case len(dones) > 0:
			p.from(worker, dones...)
		case len(asked) > 0:
			e := asked[0]
			asked = asked[1:]
			p.step(Fetched{Token: e.Token, Record: p.logs[e.Position()]})
		default:
			t.Fatalf("after %d calls nothing goes on", ran)
		}
	}
}

// A task whose spec cannot be read back from the log fails, and the scheduler is told when nothing of its class waits any more.
func TestASpecThatCannotBeReadBack(t *testing.T) {
	p := newPages(t, simple, inAnHour)
	out := p.pagedOutTask()
	for _, spec := range p.specs {
		if p.c.tasks.task(spec.ID).spec != nil {
			p.from(driver, &wire.Cancel{Task: spec.ID})
		}
	}
	p.grant(worker)
	for i := slices.IndexFunc(p.out, isFetch); i >= 0; i = slices.IndexFunc(p.out, isFetch) {
		p.step(Fetched{Token: p.out[i].Token, Err: errs.New(errs.CodeOutOfDisk, "it cannot be read")})
	}
	p.wantError(out.ID.Return(0), errs.CodeObjectLost)
	p.letAllGo()
}

func isFetch(e Effect) bool { return e.Kind == Fetch }
