package worker

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/internal/registry"
	"mobula/internal/testkit"
	"mobula/wire"
)

// ending is the word that an instance has ended by a panic, with the messages before it.
func (p *peer) ending(a ids.ActorID) (before []wire.Msg, m *wire.ActorStopped) {
	p.t.Helper()
	type end struct {
		before []wire.Msg
		m      *wire.ActorStopped
	}
	got := await(p, "the word that the instance has ended", func(log []wire.Msg) (end, bool) {
		for i, m := range log {
			if m, ok := m.(*wire.ActorStopped); ok && m.Actor == a {
				return end{slices.Clone(log[:i]), m}, true
			}
		}
		return end{}, false
	})
	return got.before, got.m
}

func panics(v any) body {
	return func(context.Context, *registry.Call) ([]registry.Output, any, error) { panic(v) }
}

// hooked is an actor type with a close hook that tells of itself.
func (p *peer) hooked(onPanic wire.OnPanic) (*wire.TaskOptions, *counter) {
	c := &counter{stopped: make(chan struct{})}
	o := p.counter(c)
	o.OnPanic = onPanic
	return o, c
}

// A panic ends the instance: what runs beside it is given up, what has not begun goes back unbegun, and the owner hears of the end last. The
// close hook is not called.
func TestAPanicEndsTheInstance(t *testing.T) {
	inBothWays(t, func(t *testing.T, cfg Config) {
		for _, onPanic := range []wire.OnPanic{wire.PanicRestarts, wire.PanicStops, wire.PanicEscalates} {
			t.Run(fmt.Sprint(onPanic), func(t *testing.T) {
				p := newPeer(t, cfg)
				opts, c := p.hooked(onPanic)
				opts.Groups = []wire.ConcurrencyGroup{{Name: "io", Max: 2}}
				a := p.create(7, opts)
				f, started, goOn := hold()
				slow := p.handle("slow", wire.TaskActorCall, func(ctx context.Context, c *registry.Call) ([]registry.Output, any, error) {
					_, _, _ = f(ctx, c)
					<-goOn // it does not look at its context
					return out("late"), nil, nil
				})
				io := *slow
				io.Group = "io"
				bad, quick := p.handle("bad", wire.TaskActorCall, panics("boom")), p.handle("quick", wire.TaskActorCall, ok)
				ended, culprit, behind := p.call(a, quick), p.call(a, bad), p.call(a, quick)
				beside := []wire.ExecTask{p.call(a, &io), p.call(a, &io)}
				waits := p.call(a, &io)
				p.exec(7, append(slices.Clone(beside), waits)...)
				<-started
				<-started
				p.exec(7, ended, culprit, behind)
				before, m := p.ending(a)
				if m.Lease != 7 || !is(m.Err, errs.ErrPanic) || !strings.Contains(m.Err.Error(), "boom") || !strings.Contains(m.Err.Stack, "panics") {
					t.Errorf("the owner is told %+v", m)
				}
				reports := make(map[ids.TaskID]*wire.Done)
				for _, d := range of[*wire.Done](before) {
					reports[d.Task] = d
				}
				if d := reports[ended.Spec.ID]; d == nil || d.Err != nil {
					t.Errorf("the call before it: %+v", d)
				}
				if d := reports[culprit.Spec.ID]; d == nil || !d.Broke || !is(d.Err, errs.ErrPanic) || d.Err.Stack == "" {
					t.Errorf("the call that panicked: %+v", d)
				}
				for _, task := range beside {
					if d := reports[task.Spec.ID]; d == nil || !is(d.Err, errs.ErrActorUnavailable) || d.Times.Started == 0 || !d.StillRuns || d.Broke {
						t.Errorf("a call beside it: %+v", d)
					}
				}
				for _, task := range []wire.ExecTask{waits, behind} {
					if d := reports[task.Spec.ID]; d == nil || !is(d.Err, errs.ErrActorUnavailable) || d.Times.Started != 0 || d.StillRuns || d.Broke {
						t.Errorf("a call that has not begun: %+v", d)
					}
				}
				late := p.call(a, quick)
				p.exec(7, late)
				if d := p.done(late.Spec.ID); !is(d.Err, errs.ErrActorUnavailable) || d.Times.Started != 0 {
					t.Errorf("a call after it: %+v", d)
				}
				close(goOn)
				for _, task := range beside {
					p.returned(task.Spec.ID)
				}
				if err := p.e.Close(t.Context()); err != nil {
					t.Error(err)
				}
				select {
				case <-c.stopped:
					t.Error("the close hook was called")
				default:
				}
			})
		}
	})
}

// The same worker has the next instance while calls of the one before still run.
func TestTheNextInstanceDoesNotWaitForTheOneThatPanicked(t *testing.T) {
	inBothWays(t, func(t *testing.T, cfg Config) {
		p := newPeer(t, cfg)
		made := atomic.Int32{}
		opts := p.handle("new", wire.TaskActorCreate, func(context.Context, *registry.Call) ([]registry.Output, any, error) {
			return out(""), &counter{n: int(made.Add(1)) * 100, stopped: make(chan struct{})}, nil
		})
		opts.MaxConcurrency = 2
		create := p.task(opts)
		create.Spec.Kind = wire.TaskActorCreate
		a := ids.ActorID(create.Spec.ID)
		p.exec(1, create)
		inside, goOn, wrote := make(chan struct{}), make(chan struct{}), make(chan int, 1)
		late := p.handle("late", wire.TaskActorCall, func(_ context.Context, c *registry.Call) ([]registry.Output, any, error) {
			inside <- struct{}{}
			<-goOn
			c.Instance.(*counter).n++
			wrote <- c.Instance.(*counter).n
			return out(""), nil, nil
		})
		p.exec(1, p.call(a, late))
		<-inside
		p.exec(1, p.call(a, p.handle("bad", wire.TaskActorCall, panics("boom"))))
		p.ending(a)
		again := create
		again.Attempt = 2
		p.exec(2, again)
		read := p.call(a, p.handle("read", wire.TaskActorCall, func(_ context.Context, c *registry.Call) ([]registry.Output, any, error) {
			return out(fmt.Sprint(c.Instance.(*counter).n)), nil, nil
		}))
		p.exec(2, read)
		if d := p.done(read.Spec.ID); d.Err != nil || string(d.Results[0].Value.Data) != "200" {
			t.Errorf("the new instance gives %+v", d)
		}
		close(goOn)
		if n := <-wrote; n != 101 {
			t.Errorf("what still ran wrote %d: not to its own instance", n)
		}
	})
}

// An actor that resumes goes on with the state that it has.
func TestAnActorMayResumeAfterAPanic(t *testing.T) {
	inBothWays(t, func(t *testing.T, cfg Config) {
		p := newPeer(t, cfg)
		opts, c := p.hooked(wire.PanicResumes)
		a := p.create(1, opts)
		half := p.call(a, p.handle("half", wire.TaskActorCall, func(_ context.Context, c *registry.Call) ([]registry.Output, any, error) {
			c.Instance.(*counter).n += 1000
			panic("half way")
		}))
		p.exec(1, half)
		if d := p.done(half.Spec.ID); !is(d.Err, errs.ErrPanic) || d.Broke {
			t.Errorf("got %+v", d)
		}
		next := p.call(a, p.handle("next", wire.TaskActorCall, ok))
		p.exec(1, next)
		if d := p.done(next.Spec.ID); d.Err != nil || c.n != 1000 {
			t.Errorf("got %v, with %d", d.Err, c.n)
		}
	})
}

// Whatever ends a method but its return is a panic to its actor, and an error that it returns is not.
func TestWhatCountsAsAPanic(t *testing.T) {
	inBothWays(t, func(t *testing.T, cfg Config) {
		readOnly := readOnlyPage(t)
		for name, c := range map[string]struct {
			f     body
			broke bool
			text  string
		}{
			"goexit": {func(context.Context, *registry.Call) ([]registry.Output, any, error) {
				runtime.Goexit()
				return nil, nil, nil
			}, true, "Goexit"},
			"nil": {panics(nil), true, "nil"},
			"read-only value": {func(context.Context, *registry.Call) ([]registry.Output, any, error) {
				readOnly[0] = 1
				return nil, nil, nil
			}, true, "read-only"},
			"value without text": {panics(spiteful{}), true, "spiteful"},
			"nil error":          {panics((*mute)(nil)), true, "mute"},
			"returned error": {func(context.Context, *registry.Call) ([]registry.Output, any, error) {
				return nil, nil, errors.New("no luck")
			}, false, "no luck"},
			"error without text": {func(context.Context, *registry.Call) ([]registry.Output, any, error) { return nil, nil, (*mute)(nil) }, false, "mute"},
			"result that panics": {func(context.Context, *registry.Call) ([]registry.Output, any, error) {
				return []registry.Output{{Size: 10, Fill: func([]byte) { panic("codec") }}}, nil, nil
			}, true, "codec"},
		} {
			t.Run(name, func(t *testing.T) {
				p := newPeer(t, cfg)
				opts, _ := p.hooked(wire.PanicRestarts)
				a := p.create(1, opts)
				call, next := p.call(a, p.handle("f", wire.TaskActorCall, c.f)), p.call(a, p.handle("next", wire.TaskActorCall, ok))
				p.exec(1, call, next)
				d := p.done(call.Spec.ID)
				if !is(d.Err, errs.ErrTaskFailed) || is(d.Err, errs.ErrPanic) != c.broke || d.Broke != c.broke || !strings.Contains(d.Err.Error(), c.text) {
					t.Errorf("got %+v", d)
				}
				if d := p.done(next.Spec.ID); c.broke != (d.Err != nil) {
					t.Errorf("the next call: %v", d.Err)
				}
				if c.broke {
					p.ending(a)
				}
			})
		}
	})
}

// mute is an error that is a nil pointer by mistake; spiteful panics with itself when its text is asked for.
type mute struct{ text string }

func (m *mute) Error() string { return m.text }

type spiteful struct{}

func (s spiteful) Error() string { panic(s) }

// readOnlyPage is memory as a value has that was given to a task.
func readOnlyPage(t *testing.T) []byte {
	b, err := unix.Mmap(-1, 0, 4096, unix.PROT_READ, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Munmap(b); err != nil {
			t.Error(err)
		}
	})
	return b
}

// scribbles has a close hook that writes to a value which it was given.
type scribbles struct{ to []byte }

func (s *scribbles) Close() error {
	s.to[0] = 1
	return nil
}

// A fault in a close hook is the hook's failure: it ends neither the worker nor, where the worker is embedded, the program.
func TestAFaultInACloseHookIsItsFailure(t *testing.T) {
	p := newPeer(t, Config{})
	page := readOnlyPage(t)
	a := p.create(1, p.handle("scribbles", wire.TaskActorCreate, func(context.Context, *registry.Call) ([]registry.Output, any, error) {
		return out(""), &scribbles{page}, nil
	}))
	p.e.Deliver([]wire.Msg{&wire.StopActor{Actor: a, Close: true}})
	if m := p.stopped(); m.Lease != 0 || !is(m.Err, errs.ErrPanic) || !strings.Contains(m.Err.Error(), "read-only") {
		t.Errorf("the node is told %+v", m)
	}
}

// A panic ends an actor that is stopping too: its close hook is not called on what the panic has left.
func TestAPanicWhileItStopsKeepsTheCloseHookBack(t *testing.T) {
	inBothWays(t, func(t *testing.T, cfg Config) {
		p := newPeer(t, cfg)
		opts, c := p.hooked(wire.PanicRestarts)
		a := p.create(3, opts)
		inside, goOn := make(chan struct{}), make(chan struct{})
		call := p.call(a, p.handle("f", wire.TaskActorCall, func(context.Context, *registry.Call) ([]registry.Output, any, error) {
			close(inside)
			<-goOn
			panic("boom")
		}))
		p.exec(3, call)
		<-inside
		p.e.Deliver([]wire.Msg{&wire.StopActor{Actor: a, Close: true, Drain: true}})
		close(goOn)
		if _, m := p.ending(a); m.Lease != 3 || !is(m.Err, errs.ErrPanic) {
			t.Errorf("the node is told %+v", m)
		}
		if err := p.e.Close(t.Context()); err != nil {
			t.Error(err)
		}
		select {
		case <-c.stopped:
			t.Error("the close hook was called")
		default:
		}
	})
}

// From the panic on, before its call is over: who waits for the calls to end, to close the actor, does not call the hook.
func TestNobodyClosesAnInstanceThatAPanicEnds(t *testing.T) {
	for _, how := range []string{"stop", "close"} {
		p := newPeer(t, Config{})
		opts, c := p.hooked(wire.PanicRestarts)
		id := p.create(3, opts)
		p.e.mu.Lock()
		a := p.e.actors[id]
		p.e.mu.Unlock()
		err := errs.New(errs.CodePanic, "boom")
		if broke, first := a.breaks(err); !broke || !first {
			t.Fatal("the panic does not end the instance")
		}
		if how == "stop" {
			p.e.closeActor(a, true)
			p.e.giveUp(a, err, nil)
			if m := p.stopped(); m.Lease != 3 || !is(m.Err, errs.ErrPanic) {
				t.Errorf("the node is told %+v", m)
			}
		}
		if err := p.e.Close(t.Context()); err != nil {
			t.Error(err)
		}
		select {
		case <-c.stopped:
			t.Errorf("%s: the close hook was called", how)
		default:
		}
	}
}

// A call that was given up by force and then panics has changed the instance by half all the same.
func TestAnAbandonedCallThatPanicsEndsTheInstance(t *testing.T) {
	inBothWays(t, func(t *testing.T, cfg Config) {
		p := newPeer(t, cfg)
		opts, _ := p.hooked(wire.PanicRestarts)
		a := p.create(1, opts)
		inside, goOn := make(chan struct{}), make(chan struct{})
		call := p.call(a, p.handle("f", wire.TaskActorCall, func(context.Context, *registry.Call) ([]registry.Output, any, error) {
			close(inside)
			<-goOn
			panic("late")
		}))
		p.exec(1, call)
		<-inside
		p.e.Deliver([]wire.Msg{&wire.CancelTask{Task: call.Spec.ID, Abandon: true}})
		if d := p.done(call.Spec.ID); !is(d.Err, errs.ErrCancelled) || !d.StillRuns {
			t.Errorf("got %+v", d)
		}
		close(goOn)
		if _, m := p.ending(a); !is(m.Err, errs.ErrPanic) {
			t.Errorf("the node is told %+v", m)
		}
		p.returned(call.Spec.ID)
	})
}

// Until its reports are sent, what an instance had is among the holdings: an owner that is rebuilt then knows what will be said of it.
func TestHoldingsHaveAnInstanceUntilItsEndIsReported(t *testing.T) {
	inBothWays(t, func(t *testing.T, cfg Config) {
		p := newPeer(t, cfg)
		opts, _ := p.hooked(wire.PanicRestarts)
		a := p.create(1, opts)
		var seen wire.Holdings
		p.mu.Lock()
		told := make(map[ids.TaskID]bool)
		p.sends = func(msgs []wire.Msg) {
			if len(of[*wire.ActorStopped](msgs)) > 0 {
				p.e.Holdings(&seen)
				return
			}
			for _, d := range of[*wire.Done](msgs) { // one that has ended may be told of before
				told[d.Task] = true
			}
		}
		p.mu.Unlock()
		bad, waits := p.call(a, p.handle("bad", wire.TaskActorCall, panics("boom"))), p.call(a, p.handle("ok", wire.TaskActorCall, ok))
		p.exec(1, bad, waits)
		p.ending(a)
		p.mu.Lock()
		defer p.mu.Unlock()
		held := func(id ids.TaskID) bool {
			return slices.ContainsFunc(seen.Tasks, func(at wire.Attempt) bool { return at.Task == id && at.Lease == 1 })
		}
		if !slices.Contains(seen.Actors, a) || !held(bad.Spec.ID) && !told[bad.Spec.ID] || !held(waits.Spec.ID) {
			t.Errorf("it held %+v", seen)
		}
	})
}

// However many calls run and panic at once: each is reported once before the instance's end, which is told once, and nothing stays behind.
func TestPanicsOfManyCallsAtOnce(t *testing.T) {
	inBothWays(t, func(t *testing.T, cfg Config) {
		for round := range 30 {
			p := newPeer(t, cfg)
			opts, _ := p.hooked(wire.PanicRestarts)
			opts.MaxConcurrency = 4
			opts.Groups = []wire.ConcurrencyGroup{{Name: "io", Max: 3}}
			a := p.create(1, opts)
			rng := testkit.Rand(t)
			f := p.handle("f", wire.TaskActorCall, func(ctx context.Context, _ *registry.Call) ([]registry.Output, any, error) {
				runtime.Gosched()
				return out("ok"), nil, ctx.Err()
			})
			bad := p.handle("bad", wire.TaskActorCall, panics("boom"))
			var ts []wire.ExecTask
			for i := range 200 {
				o := *f
				if i > 50 && rng.IntN(20) == 0 || i == 199 {
					o = *bad
				}
				o.Group = []string{"", "io"}[rng.IntN(2)]
				ts = append(ts, p.call(a, &o))
			}
			for n := range 10 {
				p.exec(1, ts[20*n:20*n+20]...)
			}
			p.ending(a)
			p.e.Deliver([]wire.Msg{&wire.Drain{}})
			testkit.Receive(t, "the drain", p.e.Drained())
			ended := 0
			first := make(map[ids.TaskID]bool)
			p.mu.Lock()
			for _, m := range p.log {
				switch m := m.(type) {
				case *wire.ActorStopped:
					ended++
				case *wire.Done:
					switch {
					case !first[m.Task] && ended > 0 && m.Times.Started != 0:
						t.Errorf("round %d: a call that had begun is reported after the end: %+v", round, m)
					case first[m.Task] && !is(m.Err, errs.ErrCancelled):
						t.Errorf("round %d: reported twice: %+v", round, m)
					}
					first[m.Task] = true
				}
			}
			p.mu.Unlock()
			for _, task := range ts {
				if !first[task.Spec.ID] {
					t.Errorf("round %d: call %v was not reported", round, task.Spec.ID)
				}
			}
			if ended != 1 {
				t.Errorf("round %d: the end is told %d times", round, ended)
			}
		}
	})
}

// A panic that no caller hears of is in the log, and so is each that ends an instance, with its stack.
func TestPanicsAreLogged(t *testing.T) {
	inBothWays(t, func(t *testing.T, cfg Config) {
		for _, onPanic := range []wire.OnPanic{wire.PanicRestarts, wire.PanicResumes} {
			var log syncBuffer
			cfg.Log = slog.New(slog.NewTextHandler(&log, nil))
			p := newPeer(t, cfg)
			opts, _ := p.hooked(onPanic)
			a := p.create(1, opts)
			told := *p.handle("told", wire.TaskActorCall, panics("boom"))
			told.NumReturns = 0
			call := p.call(a, &told)
			p.exec(1, call)
			p.done(call.Spec.ID)
			if got := log.String(); !strings.Contains(got, "nobody waits for") || !strings.Contains(got, "boom") {
				t.Errorf("%d: the log says of the call: %s", onPanic, got)
			}
			if onPanic != wire.PanicResumes {
				p.ending(a)
				if got := log.String(); !strings.Contains(got, "has ended the instance") || !strings.Contains(got, "panic_test.go") {
					t.Errorf("the log says of the instance: %s", got)
				}
			}
		}
	})
}

type syncBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}
