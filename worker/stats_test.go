package worker

import (
	"testing"
	"testing/synctest"
	"time"

	"mobula/internal/ids"
	"mobula/wire"
)

func TestStatsAndIdleLanes(t *testing.T) {
	inBothWays(t, func(t *testing.T, cfg Config) {
		cfg.StatsEvery = time.Second
		synctest.Test(t, func(t *testing.T) {
			p := newPeer(t, cfg)
			f, started, goOn := hold()
			busy := p.task(p.handle("hold", wire.TaskNormal, f))
			p.exec(1, busy)
			<-started
			opts := p.handle("ok", wire.TaskNormal, ok)
			for l := range 5 {
				p.exec(ids.LeaseID(l+2), p.task(opts))
			}
			a := p.create(9, p.counter(&counter{stopped: make(chan struct{})}))
			call := p.call(a, p.handle("m", wire.TaskActorCall, ok))
			p.exec(9, call)
			time.Sleep(10500 * time.Millisecond)
			synctest.Wait()
			p.mu.Lock()
			stats := of[*wire.Stats](p.log)
			p.mu.Unlock()
			if len(stats) != 10 || stats[9].Running != 1 || stats[9].HeapBytes == 0 || stats[9].Goroutines == 0 {
				t.Errorf("%d reports, the last %+v", len(stats), stats[len(stats)-1])
			}
			p.e.mu.Lock()
			lanes := len(p.e.lanes)
			p.e.mu.Unlock()
			if lanes != 1 {
				t.Errorf("%d lanes are kept, one has work", lanes)
			}
			again := p.task(opts) // a swept lane comes back
			p.exec(3, again)
			p.done(again.Spec.ID)
			again = p.call(a, p.funcs2("m"))
			p.exec(9, again)
			p.done(again.Spec.ID)
			close(goOn)
			p.done(busy.Spec.ID)
		})
	})
}

func TestTasksForALaneThatIsSweptAreNotLost(t *testing.T) {
	p := newPeer(t, Config{})
	l := p.e.lane(5) // as Deliver does, just before the sweep
	p.e.sweep()
	p.e.sweep()
	opts := p.handle("ok", wire.TaskNormal, ok)
	if l.push(5, []wire.ExecTask{p.task(opts)}, 1) {
		t.Fatal("a forgotten lane takes tasks")
	}
	task := p.task(opts)
	p.e.pushLease(5, []wire.ExecTask{task}, 1)
	p.done(task.Spec.ID)
}

func (p *peer) funcs2(name string) *wire.TaskOptions {
	return &wire.TaskOptions{Func: name, NumReturns: 1}
}
