package worker

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"mobula/internal/client"
	"mobula/internal/direct"
	"mobula/internal/direct/shell"
	"mobula/internal/direct/talk"
	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/internal/registry"
	"mobula/internal/testkit"
	"mobula/wire"
)

// A call that goes straight runs as one that the owner pushes does, but that the owner hears nothing of it.
func TestACallGoesStraight(t *testing.T) {
	s := newStraight(t, Config{}, (*peer).plain)
	big, keep := strings.Repeat("b", 4000), new(int)
	opts := s.handle("f", wire.TaskActorCall, func(ctx context.Context, c *registry.Call) ([]registry.Output, any, error) {
		tc := client.FromContext(ctx)
		if tc.Client != s.c || tc.Attempt != 1 || !tc.Once || tc.Blocker != nil || tc.Spec.ID != tc.Task || tc.Hosted.Life == nil || tc.Hosted.Instance != 1 || c.Instance.(*counter) == nil || ctx.Err() != nil {
			t.Errorf("the task is %+v", tc)
		}
		return []registry.Output{
			{Size: 3, Inline: []byte(string(c.Inputs[0].Value.Data)), Meta: []byte("m"), Keep: keep},
			{Size: len(big), Fill: func(dst []byte) { copy(dst, big) }},
		}, nil, nil
	})
	opts.NumReturns = 2
	a := s.ask(opts, func(a *asked) { a.spec.Args = []wire.Arg{{Value: wire.Value{Data: []byte("arg")}}} })
	o := a.outcome()
	got := o.Value.(*talk.Answer)
	if o.Err != nil || o.Bytes != 4 || got.Keep != keep || got.Results[0].Kind != wire.ResultInline || string(got.Results[0].Value.Data) != "arg" || got.Results[1].Kind != wire.ResultStored || got.Results[1].Size != 4000 || a.announced != 1 {
		t.Errorf("it came to %+v, %+v", o, got)
	}
	s.mu.Lock()
	if seals := of[*wire.Seal](s.log); len(seals) != 1 || seals[0].ID != a.spec.ID.Return(1) || seals[0].Attempt != 1 || len(of[*wire.Done](s.log)) != 1 {
		t.Errorf("the node has heard of %+v", s.log)
	}
	s.mu.Unlock()
	if got := s.ask(s.handle("ok", wire.TaskActorCall, ok)).results(); len(got) != 1 || string(got[0].Value.Data) != "ok" {
		t.Errorf("one result: %+v", got)
	}
	none := *s.handle("ok", wire.TaskActorCall, ok)
	none.NumReturns = 0
	if o := s.ask(&none).outcome(); o.Err != nil || o.Value != nil {
		t.Errorf("a call without a result came to %+v", o)
	}
	cause := fmt.Errorf("reading: %w", errs.ErrNotFound)
	bad := s.ask(s.handle("bad", wire.TaskActorCall, func(context.Context, *registry.Call) ([]registry.Output, any, error) { return nil, nil, cause })).outcome()
	if !errors.Is(bad.Err, errs.ErrTaskFailed) || !errors.Is(bad.Err, errs.ErrNotFound) || bad.Value.(*talk.Answer).Keep != cause || bad.Value.(*talk.Answer).Results != nil {
		t.Errorf("an error came as %+v", bad)
	}
	timed := s.ask(&none, func(a *asked) { a.spec.Submitted = 1 }).outcome().Value.(*talk.Answer).Ran
	if timed == nil || timed.Worker != s.c.ID() || timed.Lease == 0 || timed.Times.Started == 0 || timed.Times.Ended < timed.Times.Started || got.Ran != nil {
		t.Errorf("a call whose time of submission was noted ran %+v", timed)
	}
	late := s.ask(opts, func(a *asked) { a.spec.Deadline = 1 })
	late.fails(errs.CodeDeadline)
	s.ask(&wire.TaskOptions{Func: "nowhere", NumReturns: 1}).fails(errs.CodeUnknownFunction)
	s.ask(opts, func(a *asked) { a.k.Own = notStraight{a} }).fails(errs.CodeProtocol)
}

type notStraight struct{ *asked }

func (notStraight) TaskSpec(int) {}

// Straight calls and the owner's share what runs at once, in each group.
func TestBothWaysShareTheConcurrency(t *testing.T) {
	s := newStraight(t, Config{}, func(p *peer) *wire.TaskOptions {
		o := p.plain()
		o.MaxConcurrency, o.Groups = 2, []wire.ConcurrencyGroup{{Name: "io", Max: 1}}
		return o
	})
	f, started, goOn := hold()
	slow := s.handle("slow", wire.TaskActorCall, f)
	io := *slow
	io.Group = "io"
	first := s.call(s.actor, slow)
	s.exec(1, first)
	<-started
	straights := []*asked{s.ask(slow), s.ask(slow), s.ask(&io, group(1))}
	<-started
	<-started
	rest := []wire.ExecTask{s.call(s.actor, slow), s.call(s.actor, &io)}
	s.exec(1, rest...)
	select {
	case <-started:
		t.Error("more calls run than the groups allow")
	default:
	}
	if n := s.e.runs(); n != 3 {
		t.Errorf("%d calls run", n)
	}
	close(goOn)
	for _, a := range straights {
		a.results()
	}
	for _, task := range append(rest, first) {
		if d := s.done(task.Spec.ID); d.Err != nil {
			t.Error(d.Err)
		}
	}
	s.ask(slow, group(2)).fails(errs.CodeInvalid)
}

// MaxPendingCalls counts what comes either way.
func TestPendingCallsAreCountedTogether(t *testing.T) {
	s := newStraight(t, Config{}, func(p *peer) *wire.TaskOptions {
		o := p.plain()
		o.MaxPendingCalls = 2
		return o
	})
	f, started, goOn := hold()
	slow := s.handle("slow", wire.TaskActorCall, f)
	first := s.ask(slow)
	<-started
	second, third := s.call(s.actor, slow), s.call(s.actor, slow)
	s.exec(1, second, third)
	if d := s.done(third.Spec.ID); !is(d.Err, errs.ErrPendingCallsLimit) || d.Times.Started != 0 {
		t.Errorf("the owner's third: %+v", d)
	}
	s.ask(slow).fails(errs.CodePendingCallsLimit)
	close(goOn)
	first.results()
	s.done(second.Spec.ID)
}

// A panic in a straight call ends the instance: of each other call it is said whether it had begun, and the owner hears of the end after the ends of its calls.
func TestAPanicOfAStraightCallEndsTheInstance(t *testing.T) {
	s := newStraight(t, Config{}, func(p *peer) *wire.TaskOptions {
		o, _ := p.hooked(wire.PanicRestarts)
		o.Groups = []wire.ConcurrencyGroup{{Name: "io", Max: 2}}
		return o
	})
	f, started, goOn := hold()
	slow := s.handle("slow", wire.TaskActorCall, func(ctx context.Context, c *registry.Call) ([]registry.Output, any, error) {
		_, _, _ = f(ctx, c)
		<-goOn
		return out("late"), nil, nil
	})
	slow.Group = "io"
	beside := s.ask(slow, group(1))
	<-started
	ownBeside, ownWaits := s.call(s.actor, slow), s.call(s.actor, slow)
	s.exec(1, ownBeside, ownWaits)
	<-started
	waits := s.ask(slow, group(1))
	culprit := s.ask(s.handle("bad", wire.TaskActorCall, panics("boom")))
	if err := culprit.fails(errs.CodeTaskFailed); !is(err, errs.ErrPanic) || err.Stack == "" {
		t.Errorf("the call that panicked: %+v", err)
	}
	beside.fails(errs.CodeActorUnavailable)
	waits.fails(errs.CodeActorDied)
	before, m := s.ending(s.actor)
	if m.Lease != 1 || !is(m.Err, errs.ErrPanic) {
		t.Errorf("the owner is told %+v", m)
	}
	reports := make(map[ids.TaskID]*wire.Done)
	for _, d := range of[*wire.Done](before) {
		reports[d.Task] = d
	}
	if d := reports[ownBeside.Spec.ID]; d == nil || !is(d.Err, errs.ErrActorUnavailable) || d.Times.Started == 0 || !d.StillRuns {
		t.Errorf("the owner's call beside it: %+v", d)
	}
	if d := reports[ownWaits.Spec.ID]; d == nil || !is(d.Err, errs.ErrActorUnavailable) || d.Times.Started != 0 || d.StillRuns {
		t.Errorf("the owner's call that has not begun: %+v", d)
	}
	if s.boxes.Of(1) != nil {
		t.Error("the instance is found still")
	}
	close(goOn)
	s.returned(ownBeside.Spec.ID)
}

// Whatever ends a straight call but its return is a panic; an actor that resumes goes on after it.
func TestAnActorResumesAfterAStraightCall(t *testing.T) {
	s := newStraight(t, Config{}, func(p *peer) *wire.TaskOptions {
		o, _ := p.hooked(wire.PanicResumes)
		return o
	})
	page := readOnlyPage(t)
	for name, f := range map[string]func(){"panic": func() { panic("boom") }, "goexit": runtime.Goexit, "read-only": func() { page[0] = 1 }} {
		bad := s.ask(s.handle(name, wire.TaskActorCall, func(context.Context, *registry.Call) ([]registry.Output, any, error) {
			f()
			return nil, nil, nil
		}))
		if err := bad.fails(errs.CodeTaskFailed); !is(err, errs.ErrPanic) {
			t.Errorf("%s: got %v", name, err)
		}
		s.ask(s.handle("ok", wire.TaskActorCall, ok)).results()
	}
}

// After a kill nothing is left that waits for a method.
func TestAKillEndsStraightCalls(t *testing.T) {
	s := newStraight(t, Config{}, (*peer).plain)
	f, started, _ := hold()
	slow := s.handle("slow", wire.TaskActorCall, f)
	running, waits := s.ask(slow), s.ask(slow)
	<-started
	s.e.Deliver([]wire.Msg{&wire.StopActor{Actor: s.actor}})
	running.fails(errs.CodeActorUnavailable)
	waits.fails(errs.CodeActorDied)
	s.ask(slow).fails(errs.CodeActorDied)
	s.e.Deliver([]wire.Msg{&wire.StillThere{Instance: 1, Channel: 1}, &wire.Where{Instance: 1, Channel: 1, Numbers: []uint64{3, 4}}})
	s.mu.Lock()
	defer s.mu.Unlock()
	if told := of[*wire.Told](s.log); len(told) != 2 || told[1].No != 4 || told[1].Said != wire.SaidBegun || len(of[*wire.Lives](s.log)) != 0 {
		t.Errorf("of an instance that is gone the owner hears %+v", told)
	}
}

// With a drain what is in the mailbox runs first, and the close hook is called then; without, what runs is cancelled.
func TestAStopWaitsForStraightCalls(t *testing.T) {
	for _, drain := range []bool{false, true} {
		c := &counter{stopped: make(chan struct{})}
		s := newStraight(t, Config{}, func(p *peer) *wire.TaskOptions { return p.counter(c) })
		f, started, goOn := hold()
		left := make(chan struct{})
		slow := s.handle("slow", wire.TaskActorCall, func(ctx context.Context, c *registry.Call) ([]registry.Output, any, error) {
			outs, x, err := f(ctx, c)
			if err != nil {
				<-left
			}
			return outs, x, err
		})
		running, waits := s.ask(slow), s.ask(slow)
		<-started
		s.e.Deliver([]wire.Msg{&wire.StopActor{Actor: s.actor, Close: true, Drain: drain}})
		if !drain {
			running.fails(errs.CodeActorUnavailable)
			waits.fails(errs.CodeActorDied)
		}
		select {
		case <-c.stopped:
			t.Error("it is closed while a call runs")
		default:
		}
		if close(left); drain {
			close(goOn)
			running.results()
			waits.results()
		}
		<-c.stopped
		if m := s.stopped(); m.Actor != s.actor || m.Lease != 0 || m.Err != nil {
			t.Errorf("the node is told %+v", m)
		}
		s.ask(slow).fails(errs.CodeActorDied)
	}
}

// A call is cancelled while it waits, while it runs, and with force while its method does not listen.
func TestStraightCallsAreCancelled(t *testing.T) {
	s := newStraight(t, Config{}, (*peer).plain)
	f, started, goOn := hold()
	slow := s.handle("slow", wire.TaskActorCall, f)
	deaf := s.handle("deaf", wire.TaskActorCall, func(ctx context.Context, _ *registry.Call) ([]registry.Output, any, error) {
		started <- ""
		<-goOn
		return nil, nil, context.Cause(ctx)
	})
	running, waits := s.ask(slow), s.ask(slow)
	<-started
	waits.k.Cancel(direct.Wish{})
	waits.fails(errs.CodeCancelled)
	running.k.Cancel(direct.Wish{})
	running.fails(errs.CodeCancelled)
	stuck := s.ask(deaf)
	<-started
	stuck.k.Cancel(direct.Wish{Force: true})
	stuck.fails(errs.CodeCancelled)
	s.ask(s.handle("ok", wire.TaskActorCall, ok)).results() // in its place
	s.e.Deliver([]wire.Msg{&wire.StopActor{Actor: s.actor, Close: true, Drain: true}})
	s.stopped() // which does not wait for what was given up
	close(goOn)
}

// A call past its deadline ends for its caller. A grace later another one runs in its place, whether its method has returned or not.
func TestAStraightCallPastItsDeadlineIsLeftBehind(t *testing.T) {
	var now atomic.Int64
	now.Store(1)
	s := newStraight(t, Config{Now: now.Load}, (*peer).plain)
	inside, goOn := make(chan struct{}), make(chan struct{})
	stuck := s.ask(s.handle("stuck", wire.TaskActorCall, func(context.Context, *registry.Call) ([]registry.Output, any, error) {
		close(inside)
		<-goOn
		return out(""), nil, nil
	}), func(a *asked) { a.spec.Deadline = 100 })
	<-inside
	now.Store(100)
	stuck.k.Expired()
	stuck.fails(errs.CodeDeadline)
	f, started, end := hold()
	next := s.ask(s.handle("next", wire.TaskActorCall, f))
	now.Store(99 + int64(straightGrace))
	s.e.sweep()
	select {
	case <-started:
		t.Error("the next call has begun within the grace")
	default:
	}
	now.Add(1)
	s.e.sweep()
	testkit.Receive(t, "the start of the next call", started)
	close(end)
	next.results()
	close(goOn)
}

// The owner asks for calls of a caller that is gone: each is told of when it has ended, also if it never came.
func TestTheOwnerAsksForCallsWhoseCallerIsGone(t *testing.T) {
	s := newStraight(t, Config{}, (*peer).plain)
	f, started, goOn := hold()
	s.ask(s.handle("slow", wire.TaskActorCall, f))
	<-started
	s.e.Deliver([]wire.Msg{&wire.StillThere{Instance: 1, Channel: 1}, &wire.Where{Instance: 1, Channel: 1, Numbers: []uint64{1, 2}}})
	await(s.peer, "that it lives", func(log []wire.Msg) (int, bool) { return 0, len(of[*wire.Lives](log)) == 1 })
	s.proc.Callee(s.actor).Cut(1)
	close(goOn)
	told := await(s.peer, "what they have come to", func(log []wire.Msg) ([]*wire.Told, bool) { ms := of[*wire.Told](log); return ms, len(ms) == 2 })
	if !told[0].NeverCame || told[0].No != 2 || told[1].NeverCame || told[1].No != 1 || told[1].Outcome == nil || string(told[1].Outcome.Results[0].Value.Data) != "held" {
		t.Errorf("the owner is told %+v, %+v", told[0], told[1])
	}
	s.e.Deliver([]wire.Msg{&wire.Dropped{Instance: 1, Channel: 1}, &wire.Where{Instance: 1, Channel: 1, Numbers: []uint64{1}}})
	again := await(s.peer, "that it is forgotten", func(log []wire.Msg) ([]*wire.Told, bool) { ms := of[*wire.Told](log); return ms, len(ms) == 3 })
	if again[2].Said != wire.SaidBegun || again[2].Outcome != nil {
		t.Errorf("of a channel that was dropped the owner is told %+v", again[2])
	}
}

// An instance ends of whose calls nobody knows any more how far they have come, since what runs them has failed twice.
func TestAnInstanceEndsWhoseMailboxFails(t *testing.T) {
	s := newStraight(t, Config{}, (*peer).plain)
	f, started, goOn := hold()
	slow := s.handle("slow", wire.TaskActorCall, func(ctx context.Context, c *registry.Call) ([]registry.Output, any, error) {
		_, _, _ = f(ctx, c)
		<-goOn
		return nil, nil, nil
	})
	running, waits := s.call(s.actor, slow), s.call(s.actor, slow)
	s.exec(1, running, waits)
	<-started
	straightly := s.ask(slow)
	s.boxes.Of(1).Tell(&direct.Finished{})
	straightly.fails(errs.CodeActorDied)
	before, m := s.ending(s.actor)
	if m.Lease != 1 || !is(m.Err, errs.ErrComponentFailed) {
		t.Errorf("the owner is told %+v", m)
	}
	ds := of[*wire.Done](before)
	if len(ds) != 3 || ds[1].Times.Started == 0 || !ds[1].StillRuns || ds[2].Times.Started != 0 || !is(ds[2].Err, errs.ErrActorUnavailable) {
		t.Errorf("of its calls the owner is told %+v", ds)
	}
	close(goOn)
	s.returned(running.Spec.ID)
}

// Holdings have the owner's calls and no others; a drain of the process waits for these too.
func TestTheOwnersCallsAreCounted(t *testing.T) {
	s := newStraight(t, Config{}, (*peer).plain)
	f, started, goOn := hold()
	slow := s.handle("slow", wire.TaskActorCall, f)
	running, waits := s.call(s.actor, slow), s.call(s.actor, slow)
	s.exec(1, running, waits)
	straightly := s.ask(slow)
	<-started
	s.e.Deliver([]wire.Msg{&wire.Drain{}})
	var h wire.Holdings
	s.e.Holdings(&h)
	h.Tasks = slices.DeleteFunc(h.Tasks, func(at wire.Attempt) bool { return at.Task == ids.TaskID(s.actor) }) // its report may be on its way
	if len(h.Tasks) != 2 || h.Tasks[0].Task != running.Spec.ID || h.Tasks[1].Task != waits.Spec.ID {
		t.Errorf("it holds %+v", h.Tasks)
	}
	select {
	case <-s.e.Drained():
		t.Error("drained while calls wait")
	default:
	}
	close(goOn)
	testkit.Receive(t, "the drain", s.e.Drained())
	straightly.results()
}

// However calls come, and whatever ends the instance under them: each has an end, those of a caller run in order, and no two at once.
func TestManyCallsOfBothWaysUnderAnEnd(t *testing.T) {
	ends := map[string]func(s *straight){
		"kill":  func(s *straight) { s.e.Deliver([]wire.Msg{&wire.StopActor{Actor: s.actor, Restarts: true}}) },
		"stop":  func(s *straight) { s.e.Deliver([]wire.Msg{&wire.StopActor{Actor: s.actor, Close: true}}) },
		"drain": func(s *straight) { s.e.Deliver([]wire.Msg{&wire.StopActor{Actor: s.actor, Close: true, Drain: true}}) },
		"panic": func(s *straight) { s.ask(s.handle("bad", wire.TaskActorCall, panics("boom"))) },
		"close": func(s *straight) {
			if err := s.e.Close(s.t.Context()); err != nil {
				s.t.Error(err)
			}
		},
		"nothing": func(*straight) {},
	}
	for how, end := range ends {
		t.Run(how, func(t *testing.T) {
			for range 10 {
				s := newStraight(t, Config{}, (*peer).plain)
				var inside atomic.Int32
				f := s.handle("f", wire.TaskActorCall, func(context.Context, *registry.Call) ([]registry.Output, any, error) {
					if inside.Add(1) != 1 {
						t.Error("two calls at once")
					}
					defer inside.Add(-1)
					runtime.Gosched()
					return out("ok"), nil, nil
				})
				var own []wire.ExecTask
				var all []*asked
				for range 200 {
					own = append(own, s.call(s.actor, f))
				}
				var wg sync.WaitGroup
				wg.Go(func() {
					for i := range own {
						s.exec(1, own[i])
						if i == 100 {
							end(s)
						}
					}
				})
				for range 200 {
					all = append(all, s.quietly(f))
				}
				for _, a := range all {
					if o := a.outcome(); o.Err != nil && o.Err.Code != errs.CodeActorDied && o.Err.Code != errs.CodeActorUnavailable {
						t.Errorf("a call came to %v", o.Err)
					}
				}
				wg.Wait()
				if how == "close" {
					continue
				}
				for _, task := range own {
					s.done(task.Spec.ID)
				}
				s.e.Deliver([]wire.Msg{&wire.Drain{}})
				testkit.Receive(t, "the drain", s.e.Drained())
			}
		})
	}
}

// quietly asks beside others that number tasks.
func (s *straight) quietly(opts *wire.TaskOptions) *asked {
	id := ids.Derive(ids.RootTask(9, 8), s.channels.Add(1))
	a := &asked{t: s.t, spec: &wire.TaskSpec{ID: id, Opts: opts, Kind: wire.TaskActorCall, Actor: s.actor}, end: make(chan *direct.Outcome, 1)}
	a.k.Own, a.k.Bytes, a.k.ID, a.k.Caller = a, 64, id, ids.RootTask(9, 5)
	s.proc.Begin(s.actor, &a.k)
	return a
}

// BenchmarkAsk is a call that goes straight, waited for.
func BenchmarkAsk(b *testing.B) {
	b.ReportAllocs()
	result := []registry.Output{{Size: 1, Inline: []byte("x")}}
	s := newStraight(b, Config{StatsEvery: time.Hour}, (*peer).plain)
	opts := s.handle("f", wire.TaskActorCall, func(context.Context, *registry.Call) ([]registry.Output, any, error) { return result, nil, nil })
	spec, end, callee := s.call(s.actor, opts).Spec, make(chan *direct.Outcome, 1), s.proc.Callee(s.actor)
	own := &asked{spec: spec, end: end}
	for b.Loop() {
		k := &shell.Call{Own: own}
		k.ID, k.Caller, k.Bytes = spec.ID, spec.ID, 64
		callee.Begin(k)
		<-end
		k.Released()
	}
}
