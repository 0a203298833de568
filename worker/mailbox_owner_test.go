package worker

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"mobula/internal/client"
	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/internal/registry"
	"mobula/wire"
)

// A call of an actor that waits gives back its CPU, and the calls behind it stay; one that streams waits for its consumer.
func TestAnActorsCallWaits(t *testing.T) {
	inBothWays(t, func(t *testing.T, cfg Config) {
		p := newPeer(t, cfg)
		a := p.create(4, p.plain())
		h := p.object()
		waits := p.call(a, p.handle("waits", wire.TaskActorCall, func(ctx context.Context, _ *registry.Call) ([]registry.Output, any, error) {
			_, err := p.c.Get1(ctx, h)
			return out("got"), nil, err
		}))
		streams := p.call(a, p.handle("streams", wire.TaskActorCall, func(_ context.Context, c *registry.Call) ([]registry.Output, any, error) {
			for i := range 3 {
				if err := c.Emit(registry.Output{Size: 1, Inline: fmt.Append(nil, i)}); err != nil {
					return nil, nil, err
				}
			}
			return nil, nil, nil
		}))
		streams.Spec.Opts.NumReturns, streams.Spec.Opts.Backpressure = wire.Streaming, 2
		p.exec(4, waits, streams)
		for i, task := range []ids.TaskID{waits.Spec.ID, streams.Spec.ID} {
			m := await(p, "Blocked", func(log []wire.Msg) (*wire.Blocked, bool) {
				if ms := of[*wire.Blocked](log); len(ms) > i {
					return ms[i], true
				}
				return nil, false
			})
			if m.Task != task || m.Lease != 4 || len(m.Returned) != 0 {
				t.Errorf("it is blocked by %+v", m)
			}
			var held wire.Holdings
			if p.e.Holdings(&held); len(held.Tasks) == 0 {
				t.Error("nothing is held")
			}
			for _, at := range held.Tasks {
				if at.Blocked != (at.Task == task) {
					t.Errorf("it holds %+v", at)
				}
			}
			if p.resolve(h.ID()); i == 1 {
				p.e.Deliver([]wire.Msg{&wire.StreamAck{Task: task, Consumed: 2}})
			}
			await(p, "Unblocked", func(log []wire.Msg) (int, bool) { return 0, len(of[*wire.Unblocked](log)) == i+1 })
			p.e.Deliver([]wire.Msg{&wire.Resume{Task: task}})
		}
		if d := p.done(waits.Spec.ID); d.Err != nil || string(d.Results[0].Value.Data) != "got" {
			t.Errorf("the one that waits gave %+v", d)
		}
		if d := p.done(streams.Spec.ID); d.Err != nil || d.Items != 3 {
			t.Errorf("the one that streams gave %+v", d)
		}
	})
}

// The owner's calls of an actor are cancelled while they wait, while they run, and by force.
func TestAnActorsCallsAreCancelled(t *testing.T) {
	inBothWays(t, func(t *testing.T, cfg Config) {
		p := newPeer(t, cfg)
		a := p.create(1, p.plain())
		f, started, goOn := hold()
		slow := p.handle("slow", wire.TaskActorCall, f)
		running, waits := p.call(a, slow), p.call(a, slow)
		p.exec(1, running, waits)
		<-started
		p.e.Deliver([]wire.Msg{&wire.CancelTask{Task: waits.Spec.ID, Abandon: true}, &wire.CancelTask{Task: running.Spec.ID}})
		if d := p.done(waits.Spec.ID); !is(d.Err, errs.ErrCancelled) || d.Times.Started != 0 || d.StillRuns {
			t.Errorf("one that waits: %+v", d)
		}
		if d := p.done(running.Spec.ID); !is(d.Err, errs.ErrCancelled) || d.Times.Started == 0 || d.StillRuns {
			t.Errorf("one that runs: %+v", d)
		}
		inside := make(chan struct{})
		stuck := p.call(a, p.handle("stuck", wire.TaskActorCall, func(context.Context, *registry.Call) ([]registry.Output, any, error) {
			close(inside)
			<-goOn
			return out("late"), nil, nil
		}))
		p.exec(1, stuck)
		<-inside
		p.e.Deliver([]wire.Msg{&wire.CancelTask{Task: stuck.Spec.ID, Abandon: true}})
		if d := p.done(stuck.Spec.ID); !is(d.Err, errs.ErrCancelled) || d.Times.Started == 0 || !d.StillRuns {
			t.Errorf("one that is stuck: %+v", d)
		}
		next := p.call(a, p.handle("ok", wire.TaskActorCall, ok))
		p.exec(1, next)
		if d := p.done(next.Spec.ID); d.Err != nil {
			t.Errorf("the next one: %v", d.Err)
		}
		close(goOn)
		p.returned(stuck.Spec.ID)
	})
}

// A call that has ended is reported soon though the one behind it takes long.
func TestTheReportOfAnActorsCallDoesNotWaitForTheNext(t *testing.T) {
	inBothWays(t, func(t *testing.T, cfg Config) {
		p := newPeer(t, cfg)
		a := p.create(1, p.plain())
		f, started, goOn := hold()
		short, long, last := p.call(a, p.handle("short", wire.TaskActorCall, ok)), p.call(a, p.handle("long", wire.TaskActorCall, f)), p.call(a, p.handle("short", wire.TaskActorCall, ok))
		p.exec(1, short, long, last)
		<-started
		p.done(short.Spec.ID) // while the long one still runs
		close(goOn)
		p.done(last.Spec.ID)
	})
}

// What a call has promised and nobody needs is told to it, waiting or running.
func TestAnActorsCallHearsWhatIsNotNeeded(t *testing.T) {
	inBothWays(t, func(t *testing.T, cfg Config) {
		p := newPeer(t, cfg)
		a := p.create(1, p.plain())
		f, started, goOn := hold()
		first := p.call(a, p.handle("slow", wire.TaskActorCall, f))
		promises := p.call(a, p.handle("promises", wire.TaskActorCall, func(ctx context.Context, _ *registry.Call) ([]registry.Output, any, error) {
			return out(fmt.Sprint(client.FromContext(ctx).Unneeded.Take())), nil, nil
		}))
		promises.Spec.Promises = []uint32{7, 8}
		p.exec(1, first, promises)
		<-started
		p.e.Deliver([]wire.Msg{&wire.Unneeded{Task: promises.Spec.ID, Numbers: []uint32{8}}})
		close(goOn)
		if d := p.done(promises.Spec.ID); d.Err != nil || string(d.Results[0].Value.Data) != "[8]" {
			t.Errorf("got %+v", d)
		}
	})
}

// A mailbox' goroutines end when there was nothing to run for a while.
func TestIdleGoroutinesOfAMailboxEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStraight(t, Config{StatsEvery: time.Second}, (*peer).plain)
		runners := func() int {
			synctest.Wait()
			buf := make([]byte, 1<<20)
			return strings.Count(string(buf[:runtime.Stack(buf, true)]), "shell.(*runner).loop(")
		}
		opts := s.handle("ok", wire.TaskActorCall, ok)
		s.ask(opts).results()
		if n := runners(); n != 1 {
			t.Errorf("%d goroutines run calls", n)
		}
		time.Sleep(time.Duration(laneLinger+1) * time.Second) // the bubble's clock
		if n := runners(); n != 0 {
			t.Errorf("%d goroutines have nothing to run", n)
		}
		s.ask(opts).results()
	})
}
