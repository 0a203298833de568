package worker

import (
	"context"
	"errors"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"mobula/internal/client"
	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/internal/registry"
	"mobula/wire"
)

// counter is a test's actor.
type counter struct {
	n       int
	stopped chan struct{}
	panics  bool
}

func (c *counter) Close(context.Context) error {
	close(c.stopped)
	if c.panics {
		panic("in close")
	}
	return nil
}

func (p *peer) counter(c *counter) *wire.TaskOptions {
	return p.handle("counter", wire.TaskActorCreate, func(context.Context, *registry.Call) ([]registry.Output, any, error) {
		return out(""), c, nil
	})
}

func TestActorCallsRunInOrderOneAtATime(t *testing.T) {
	inBothWays(t, func(t *testing.T, cfg Config) {
		p := newPeer(t, cfg)
		resumes := p.counter(&counter{stopped: make(chan struct{})})
		resumes.OnPanic = wire.PanicResumes
		a := p.create(1, resumes)
		var inside atomic.Int32
		var order []ids.TaskID
		inc := p.handle("inc", wire.TaskActorCall, func(ctx context.Context, c *registry.Call) ([]registry.Output, any, error) {
			if inside.Add(1) != 1 {
				t.Error("two calls at once")
			}
			defer inside.Add(-1)
			i := c.Instance.(*counter)
			i.n++
			order = append(order, client.FromContext(ctx).Task)
			if i.n == 500 {
				panic("one call of many")
			}
			return out("ok"), nil, nil
		})
		var ts []wire.ExecTask
		for range 1000 {
			ts = append(ts, p.call(a, inc))
		}
		p.exec(1, ts[:400]...)
		p.exec(1, ts[400:]...)
		ds := p.dones(1001)[1:] // the first is the creation's
		for i := range ts {
			if order[i] != ts[i].Spec.ID {
				t.Fatalf("call %d ran out of order", i)
			}
			if failed := ds[i].Err != nil; failed != (i == 499) {
				t.Errorf("call %d: %v", i, ds[i].Err)
			}
		}
	})
}

func TestConcurrencyAndGroups(t *testing.T) {
	inBothWays(t, func(t *testing.T, cfg Config) {
		p := newPeer(t, cfg)
		opts := p.counter(&counter{stopped: make(chan struct{})})
		opts.MaxConcurrency = 4
		opts.Groups = []wire.ConcurrencyGroup{{Name: "io", Max: 2}}
		a := p.create(1, opts)
		f, started, goOn := hold()
		slow := p.handle("slow", wire.TaskActorCall, f)
		io := *slow
		io.Group = "io"
		none := *slow
		none.Group = "none"
		var ts []wire.ExecTask
		for range 6 {
			ts = append(ts, p.call(a, slow), p.call(a, &io))
		}
		p.exec(1, ts...)
		for range 4 + 2 {
			<-started
		}
		select {
		case <-started:
			t.Error("more calls run than the groups allow")
		default:
		}
		wrong := p.call(a, &none)
		p.exec(1, wrong)
		if d := p.done(wrong.Spec.ID); !errors.Is(d.Err, errs.ErrInvalid) {
			t.Errorf("an unknown group gave %v", d.Err)
		}
		close(goOn)
		for _, task := range ts {
			if d := p.done(task.Spec.ID); d.Err != nil {
				t.Error(d.Err)
			}
		}
	})
}

func TestCallsWaitForTheCreation(t *testing.T) {
	inBothWays(t, func(t *testing.T, cfg Config) {
		p := newPeer(t, cfg)
		goOn, fail := make(chan struct{}), atomic.Bool{}
		opts := p.handle("slow actor", wire.TaskActorCreate, func(context.Context, *registry.Call) ([]registry.Output, any, error) {
			<-goOn
			if fail.Load() {
				return nil, nil, errors.New("no luck")
			}
			return out(""), new(counter), nil
		})
		for _, failing := range []bool{false, true} {
			fail.Store(failing)
			create := p.task(opts)
			create.Spec.Kind = wire.TaskActorCreate
			call := p.call(ids.ActorID(create.Spec.ID), p.handle("m", wire.TaskActorCall, ok))
			p.exec(1, create)
			p.exec(1, call)
			goOn <- struct{}{}
			cd, d := p.done(create.Spec.ID), p.done(call.Spec.ID)
			if failing != is(d.Err, errs.ErrActorDied) || failing != is(cd.Err, errs.ErrTaskFailed) {
				t.Errorf("failing %v: creation %v, call %v", failing, cd.Err, d.Err)
			}
			if failing {
				after := p.call(ids.ActorID(create.Spec.ID), p.handle("m", wire.TaskActorCall, ok))
				p.exec(1, after)
				if d := p.done(after.Spec.ID); !errors.Is(d.Err, errs.ErrActorUnavailable) {
					t.Errorf("a call after the failure gave %v", d.Err)
				}
			}
		}
	})
}

func TestAKillTakesTheActorAwayWithoutItsCloseHook(t *testing.T) {
	inBothWays(t, func(t *testing.T, cfg Config) {
		for _, restarts := range []bool{false, true} {
			want := errs.CodeActorDied
			if restarts {
				want = errs.CodeActorUnavailable
			}
			p := newPeer(t, cfg)
			c := &counter{stopped: make(chan struct{})}
			a := p.create(1, p.counter(c))
			f, started, _ := hold()
			slow := p.handle("slow", wire.TaskActorCall, f)
			running, queued := p.call(a, slow), p.call(a, slow)
			p.exec(1, running, queued)
			<-started
			p.e.Deliver([]wire.Msg{&wire.StopActor{Actor: a, Restarts: restarts}})
			for _, task := range []wire.ExecTask{running, queued} {
				d := p.done(task.Spec.ID)
				if d.Err == nil || d.Err.Code != want || errors.Is(d.Err, errs.ErrActorDied) && errors.Is(d.Err, errs.ErrActorUnavailable) {
					t.Errorf("restarts %v: got %v", restarts, d.Err)
				}
			}
			after := p.call(a, slow)
			p.exec(1, after)
			if d := p.done(after.Spec.ID); !errors.Is(d.Err, errs.ErrActorUnavailable) {
				t.Errorf("a call after the kill gave %v", d.Err)
			}
			if err := p.e.Close(t.Context()); err != nil {
				t.Error(err)
			}
			select {
			case <-c.stopped:
				t.Error("the close hook of a killed actor was called")
			default:
			}
		}
	})
}

func TestAnActorIsClosedWhenItsCallsHaveEnded(t *testing.T) {
	inBothWays(t, func(t *testing.T, cfg Config) {
		for _, drain := range []bool{false, true} {
			p := newPeer(t, cfg)
			c := &counter{stopped: make(chan struct{}), panics: drain}
			a := p.create(1, p.counter(c))
			f, started, goOn := hold()
			slow := p.handle("slow", wire.TaskActorCall, f)
			running, queued := p.call(a, slow), p.call(a, slow)
			p.exec(1, running, queued)
			<-started
			p.e.Deliver([]wire.Msg{&wire.StopActor{Actor: a, Close: true, Drain: drain}})
			late := p.call(a, slow)
			p.exec(1, late)
			if d := p.done(late.Spec.ID); !errors.Is(d.Err, errs.ErrActorDied) && (drain || !errors.Is(d.Err, errs.ErrActorUnavailable)) { // it may have ended meanwhile
				t.Errorf("a call after it gave %v", d.Err)
			}
			if drain {
				select {
				case <-c.stopped:
					t.Fatal("it is closed while a call runs")
				default:
				}
				close(goOn)
			}
			for _, task := range []wire.ExecTask{running, queued} {
				if d := p.done(task.Spec.ID); drain != (d.Err == nil) || !drain && !errors.Is(d.Err, errs.ErrActorDied) {
					t.Errorf("drain %v: got %v", drain, d.Err)
				}
			}
			<-c.stopped
			if m := p.stopped(); m.Actor != a || drain != is(m.Err, errs.ErrPanic) {
				t.Errorf("the node is told %+v", m)
			}
			p.e.Deliver([]wire.Msg{&wire.StopActor{Actor: a, Close: true}}) // a node that restarted asks again
			if m := p.stopped(); m.Actor != a || m.Err != nil {
				t.Errorf("asked again, it says %+v", m)
			}
		}
	})
}

func TestACloseHookThatHangsIsLeftBehind(t *testing.T) {
	inBothWays(t, func(t *testing.T, cfg Config) {
		cfg.StopGrace = 10 * time.Millisecond
		p := newPeer(t, cfg)
		hang := &hangs{goOn: make(chan struct{})}
		defer close(hang.goOn)
		a := p.create(1, p.handle("hangs", wire.TaskActorCreate, func(context.Context, *registry.Call) ([]registry.Output, any, error) {
			return out(""), hang, nil
		}))
		p.e.Deliver([]wire.Msg{&wire.StopActor{Actor: a, Close: true}})
		if m := p.stopped(); !is(m.Err, errs.ErrDeadline) {
			t.Errorf("the node is told %+v", m)
		}
	})
}

// hangs is an io.Closer.
type hangs struct{ goOn chan struct{} }

func (h *hangs) Close() error {
	<-h.goOn
	return nil
}

// If the node has said that it stops, its workers close their actors, even if a report failed before they read that. If it is gone without a
// goodbye, they do not.
func TestCloseClosesActorsUnlessTheNodeIsLost(t *testing.T) {
	inBothWays(t, func(t *testing.T, cfg Config) {
		broken := errs.New(errs.CodeDisconnected, "broken pipe")
		for name, last := range map[string]struct {
			said   []wire.Msg
			closes bool
		}{
			"stopping": {[]wire.Msg{&wire.Bye{Err: errs.New(errs.CodeShutdown, "stopping")}}, true},
			"gone":     {nil, false},
			"sent off": {[]wire.Msg{&wire.Bye{Err: errs.New(errs.CodeProtocol, "nonsense")}}, false},
		} {
			t.Run(name, func(t *testing.T) {
				p := newPeer(t, cfg)
				c := &counter{stopped: make(chan struct{})}
				p.create(1, p.counter(c))
				p.e.c.Disconnected(nil, broken)
				rest, noted := make(chan struct{}), make(chan struct{})
				go func() {
					defer close(noted)
					p.e.nodeGone(rest)
				}()
				p.e.Deliver(last.said)
				close(rest)
				<-noted
				if err := p.e.Close(t.Context()); err != nil {
					t.Fatal(err)
				}
				select {
				case <-c.stopped:
					if !last.closes {
						t.Error("an actor was closed whose node is gone")
					}
				default:
					if last.closes {
						t.Error("an actor was not closed")
					}
				}
			})
		}
	})
}

func is(e *errs.Error, want error) bool { return e != nil && errors.Is(e, want) }

// lacking is an error whose references are released when it is garbage, and an actor whose hook fails with it.
type lacking struct {
	freed  *atomic.Bool
	panics bool
}

func (l *lacking) Error() string { return "lacking" }

type failsToClose lacking

func (f *failsToClose) Close() error {
	err := &lacking{f.freed, f.panics}
	runtime.AddCleanup(err, func(freed *atomic.Bool) { freed.Store(true) }, f.freed)
	if f.panics {
		panic(err)
	}
	return err
}

// The error of a close hook is kept until the node was told.
func TestTheErrorOfACloseHookIsKeptUntilItIsReported(t *testing.T) {
	inBothWays(t, func(t *testing.T, cfg Config) {
		for _, panics := range []bool{false, true} {
			p := newPeer(t, cfg)
			freed, early := new(atomic.Bool), new(atomic.Bool)
			p.mu.Lock()
			p.sends = func(msgs []wire.Msg) {
				if len(of[*wire.ActorStopped](msgs)) > 0 {
					for range 20 {
						runtime.GC()
						runtime.Gosched()
					}
					early.Store(freed.Load())
				}
			}
			p.mu.Unlock()
			a := p.create(1, p.handle("fails", wire.TaskActorCreate, func(context.Context, *registry.Call) ([]registry.Output, any, error) {
				return out(""), &failsToClose{freed, panics}, nil
			}))
			p.e.Deliver([]wire.Msg{&wire.StopActor{Actor: a, Close: true}})
			if m := p.stopped(); !is(m.Err, errs.ErrTaskFailed) {
				t.Errorf("the node is told %+v", m)
			}
			if early.Load() {
				t.Errorf("panics %v: it is garbage before it is reported", panics)
			}
		}
	})
}
