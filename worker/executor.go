package worker

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"mobula/internal/client"
	"mobula/internal/direct"
	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/internal/registry"
	"mobula/wire"
)

// Executor runs the tasks that the node pushes. One goroutine calls Deliver; everything else is safe for
// concurrent use.
type Executor struct {
	cfg    Config
	c      *client.Client
	log    *slog.Logger
	inline int
	reader *reader // of a worker process; nil: Deliver's caller runs nothing

	mu      sync.Mutex
	lanes   map[ids.LeaseID]*lane       // guarded by mu
	actors  map[ids.ActorID]*actor      // guarded by mu
	hosts   map[direct.Instance]*hosted // guarded by mu: instances whose calls a mailbox runs
	streams map[ids.TaskID]*stream      // guarded by mu
	waiting map[ids.TaskID]*call        // guarded by mu: tasks that were reported blocked
	closed  bool                        // guarded by mu
	work    sync.WaitGroup              // lanes' goroutines and closing actors; Add under life
	life    sync.Mutex                  // the innermost lock
	over    bool                        // guarded by life: no goroutine starts any more
	flusher *time.Timer                 // guarded by mu
	armed   atomic.Bool                 // the flusher runs
	running atomic.Int32                // calls under way in lanes
	calls   callBlocks                  // that have come straight
	pending atomic.Int64                // tasks received and not reported
	drain   atomic.Bool
	drained chan struct{} // closed when a drain is complete
	once    sync.Once     // of drained
	lost    atomic.Bool   // the node is gone: actors are not closed
	goodbye atomic.Bool   // the node has said that it stops
	quit    chan struct{} // closed by Close
}

// New makes an executor. Close ends it.
func New(cfg Config) *Executor {
	if cfg.Lookup == nil {
		cfg.Lookup = registry.Lookup
	}
	if cfg.Base == nil {
		cfg.Base = context.Background()
	}
	cfg.returned = returned(cfg.Base)
	if cfg.Now == nil {
		cfg.Now = cfg.Client.Now
	}
	if cfg.Log == nil {
		cfg.Log = slog.Default()
	}
	if cfg.StatsEvery == 0 {
		cfg.StatsEvery = time.Second
	}
	if cfg.StopGrace == 0 {
		cfg.StopGrace = 5 * time.Second
	}
	e := &Executor{cfg: cfg, c: cfg.Client, log: cfg.Log, inline: cfg.Client.InlineMax(),
		lanes: make(map[ids.LeaseID]*lane), actors: make(map[ids.ActorID]*actor), hosts: make(map[direct.Instance]*hosted),
		streams: make(map[ids.TaskID]*stream), waiting: make(map[ids.TaskID]*call),
		drained: make(chan struct{}), quit: make(chan struct{})}
	if cfg.StatsEvery > 0 {
		e.work.Add(1)
		go e.report()
	}
	return e
}

// Deliver takes a batch of messages from the node, in order. Messages that are not for an executor go to the
// client.
func (e *Executor) Deliver(batch []wire.Msg) {
	var now int64
	for _, m := range batch {
		switch m := m.(type) {
		case *wire.Exec:
			if now == 0 {
				now = e.cfg.Now()
			}
			e.exec(m, now)
		case *wire.CancelTask:
			e.cancel(m)
		case *wire.StopActor:
			e.stopActor(m)
		case *wire.Resume:
			e.resume(m.Task)
		case *wire.StreamAck:
			e.acknowledge(m)
		case *wire.Unneeded:
			e.onUnneeded(m)
		case *wire.Drain:
			e.startDrain()
		case *wire.HostChannel:
			e.hostChannel(m)
		case *wire.StillThere:
			e.stillThere(m)
		case *wire.Where:
			e.where(m)
		case *wire.Unwanted:
			e.tellHosted(m.Instance, direct.Unwanted{Channel: direct.Channel(m.Channel), No: m.No, Wish: direct.Wish(m.Wish)})
		case *wire.Dropped:
			e.tellHosted(m.Instance, direct.Dropped{Channel: direct.Channel(m.Channel)})
		case *wire.Bye:
			e.goodbye.Store(m.Err != nil && m.Err.Code == errs.CodeShutdown)
			e.c.Dispatch(m)
		default:
			e.c.Dispatch(m)
		}
	}
}

// exec puts tasks on their lane: a lease's, or for calls their actor's.
func (e *Executor) exec(m *wire.Exec, now int64) {
	e.pending.Add(int64(len(m.Tasks)))
	if len(m.Tasks) > 0 && m.Tasks[0].Spec.Kind != wire.TaskNormal {
		for rest := m.Tasks; len(rest) > 0; {
			n := 1 // calls of one handle go to their mailbox together
			for n < len(rest) && rest[n].Spec.Opts == rest[0].Spec.Opts && rest[n].Spec.Actor == rest[0].Spec.Actor && rest[n].Spec.Kind == wire.TaskActorCall {
				n++
			}
			e.execActor(m.Lease, rest[:n], now)
			rest = rest[n:]
		}
		return
	}
	e.pushLease(m.Lease, m.Tasks, now)
}

// pushLease queues tasks on a lease's lane. It makes the lane again if it was just swept.
func (e *Executor) pushLease(lease ids.LeaseID, tasks []wire.ExecTask, now int64) {
	for pushed := false; !pushed; {
		pushed = e.lane(lease).push(lease, tasks, now)
	}
}

func (e *Executor) execActor(lease ids.LeaseID, tasks []wire.ExecTask, now int64) {
	spec := tasks[0].Spec
	switch spec.Kind {
	case wire.TaskActorCall:
		l, err := e.group(spec)
		if err == nil && !l.push(lease, tasks, now) {
			if h := l.actor.hosted.Load(); h != nil {
				h.push(lease, tasks, now)
			} else if err = l.actor.broken.Load(); err == nil {
				err = actorStopped(spec.Actor)
			}
		}
		if err != nil {
			for i := range tasks {
				e.refuse(&tasks[i], lease, now, err)
			}
		}
	case wire.TaskActorCreate:
		e.newActor(spec, lease)
		e.pushLease(lease, tasks, now)
	default:
		e.pushLease(lease, tasks, now)
	}
}

// refuse reports a task that is not run.
func (e *Executor) refuse(t *wire.ExecTask, lease ids.LeaseID, now int64, err *errs.Error) {
	e.send(&wire.Done{Task: t.Spec.ID, Attempt: t.Attempt, Lease: lease, Err: err, Times: wire.Times{Received: now, Ended: now}})
	e.finished(1)
}

// lane is the lane of a lease, made when its first task comes.
func (e *Executor) lane(lease ids.LeaseID) *lane {
	e.mu.Lock()
	defer e.mu.Unlock()
	l := e.lanes[lease]
	if l == nil {
		l = newLane(e, 1, nil)
		e.lanes[lease] = l
	}
	return l
}

// all gives every lane.
func (e *Executor) all() []*lane {
	e.mu.Lock()
	defer e.mu.Unlock()
	out := make([]*lane, 0, len(e.lanes)+len(e.actors))
	for _, l := range e.lanes {
		out = append(out, l)
	}
	for _, a := range e.actors {
		out = append(out, a.lanes...)
	}
	return out
}

// cancel cancels a task, waiting or running. The lanes are searched: cancels are rare, and an index would cost
// every task.
func (e *Executor) cancel(m *wire.CancelTask) {
	for _, l := range e.all() {
		if l.cancel(m.Task, m.Abandon) {
			return
		}
	}
	for _, h := range e.allHosted() {
		if h.cancel(m.Task, m.Abandon) {
			return
		}
	}
}

// onUnneeded passes Unneeded to the task that promised the results, unless it has ended.
func (e *Executor) onUnneeded(m *wire.Unneeded) {
	for _, l := range e.all() {
		if l.onUnneeded(m) {
			return
		}
	}
	for _, h := range e.allHosted() {
		if h.onUnneeded(m) {
			return
		}
	}
}

// send reports to the node. If the connection is gone nobody waits for the report.
func (e *Executor) send(msgs ...wire.Msg) {
	if err := e.c.Send(msgs...); err != nil {
		e.log.Debug("a report was not sent", "err", err)
	}
}

// finished counts tasks whose report was sent.
func (e *Executor) finished(n int) {
	if e.pending.Add(int64(-n)) == 0 && e.drain.Load() {
		e.drainedNow()
	}
}

func (e *Executor) startDrain() {
	e.drain.Store(true)
	if e.pending.Load() == 0 {
		e.drainedNow()
	}
}

func (e *Executor) drainedNow() {
	e.once.Do(func() {
		e.c.Flush()
		close(e.drained)
	})
}

// Drained is closed when the node asked for a drain and every task was reported.
func (e *Executor) Drained() <-chan struct{} { return e.drained }

// spawn starts a goroutine that Close waits for; false after Close.
func (e *Executor) spawn(f func()) bool {
	e.life.Lock()
	defer e.life.Unlock()
	if e.over {
		return false
	}
	e.work.Go(f)
	return true
}

// enter counts a goroutine that runs a task, until work.Done; false after Close.
func (e *Executor) enter() bool {
	e.life.Lock()
	defer e.life.Unlock()
	if !e.over {
		e.work.Add(1)
	}
	return !e.over
}

// Close cancels running tasks, drops waiting ones, closes the actors unless the node is lost, and waits for every
// goroutine until ctx ends. Tasks that ignore their context, and those that were abandoned, are left behind.
func (e *Executor) Close(ctx context.Context) error {
	e.mu.Lock()
	if e.closed {
		e.mu.Unlock()
		return nil
	}
	e.closed = true
	e.life.Lock()
	e.over = true
	e.life.Unlock()
	close(e.quit)
	if e.flusher != nil {
		e.flusher.Stop()
	}
	actors := make([]*actor, 0, len(e.actors))
	for id, a := range e.actors {
		a.end()
		actors = append(actors, a)
		delete(e.actors, id)
	}
	e.mu.Unlock()
	for _, l := range e.all() {
		l.close()
	}
	for _, a := range actors {
		for _, l := range a.lanes {
			l.close()
		}
		if h := a.hosted.Load(); h != nil {
			h.close()
		}
	}
	done := make(chan struct{})
	go func() {
		e.work.Wait()
		if !e.lost.Load() {
			var hooks sync.WaitGroup
			for _, a := range actors {
				if a.made.Load() && !a.killed.Load() {
					hooks.Go(func() { _, _ = e.closeInstance(a) }) // which logs its error
				}
			}
			hooks.Wait()
		}
		close(done)
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
