package pool

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/raylet/sched"
	"mobula/wire"
)

const (
	tasks  = sched.SlotTask
	actors = sched.SlotActor
	own    = sched.SlotOwn
)

// failer is what *testing.T and *rapid.T have in common.
type failer interface {
	Helper()
	Fatalf(format string, args ...any)
}

// world plays the processes, the scheduler and the clock around a core.
type world struct {
	t       failer
	c       *Core
	now     int64
	timers  []timer
	procs   map[ids.WorkerID]*proc
	ready   map[ids.LeaseID]ids.ClientID // leases that were answered with a worker
	failed  map[ids.LeaseID]error
	gone    map[ids.LeaseID]sched.WorkerGone
	reclaim []ids.LeaseID
	refused []*errs.Error
	needs   map[ids.LeaseID]sched.NeedWorker
	lease   ids.LeaseID
	client  ids.ClientID
	started int
}

type timer struct {
	at int64
	ev Event
}

// proc is a worker process.
type proc struct {
	StartProcess
	client     ids.ClientID
	drain      bool
	terminated bool
	killed     bool
}

func newWorld(t failer, cfg Config) *world {
	t.Helper()
	n := 0
	cfg.NewToken = func() []byte { n++; return fmt.Appendf(nil, "token-%d", n) }
	if cfg.CPUs == 0 {
		cfg.CPUs = 2
	}
	c, err := New(cfg)
	if err != nil {
		t.Fatalf("New: %v", err)
	}
	return &world{t: t, c: c, procs: map[ids.WorkerID]*proc{}, ready: map[ids.LeaseID]ids.ClientID{}, failed: map[ids.LeaseID]error{},
		gone: map[ids.LeaseID]sched.WorkerGone{}, needs: map[ids.LeaseID]sched.NeedWorker{}, client: 1000}
}

func (w *world) step(ev Event) {
	w.t.Helper()
	for _, e := range slices.Clone(w.c.Step(w.now, ev)) {
		w.effect(e)
	}
	w.validate()
}

func (w *world) effect(e Effect) {
	switch e := e.(type) {
	case StartProcess:
		w.started++
		w.procs[e.Worker] = &proc{StartProcess: e}
	case KillProcess:
		if p := w.procs[e.Worker]; p != nil {
			p.killed = true
		}
	case Terminate:
		if p := w.procs[e.Worker]; p != nil {
			p.terminated = true
		}
	case SendDrain:
		p := w.byClient(e.Client)
		if p == nil || p.drain {
			w.t.Fatalf("drain of client %d: no process, or told twice", e.Client)
		}
		p.drain = true
	case Refuse:
		w.refused = append(w.refused, e.Err)
	case After:
		w.timers = append(w.timers, timer{w.now + int64(e.D), e.Ev})
	case ToSched:
		switch m := e.Event.(type) {
		case sched.WorkerReady:
			w.answer(m.Lease)
			if p := w.byClient(m.Worker); p != nil && (p.drain || p.killed || p.terminated) {
				w.t.Fatalf("lease %d is put in worker %d, which is to end", m.Lease, p.Worker)
			}
			w.ready[m.Lease] = m.Worker
		case sched.NoWorker:
			w.answer(m.Lease)
			w.failed[m.Lease] = m.Err
		case sched.WorkerGone:
			for _, l := range m.Leases {
				if w.ready[l] != m.Worker {
					w.t.Fatalf("lease %d was not in client %d", l, m.Worker)
				}
				delete(w.ready, l)
				w.gone[l] = m
			}
		case sched.WorkerDraining:
			w.reclaim = append(w.reclaim, m.Leases...)
		}
	}
}

func (w *world) answer(l ids.LeaseID) {
	if _, open := w.needs[l]; !open || w.ready[l] != 0 || w.failed[l] != nil {
		w.t.Fatalf("lease %d is answered twice, or was released", l)
	}
}

func (w *world) byClient(c ids.ClientID) *proc {
	for _, p := range w.procs {
		if p.client == c {
			return p
		}
	}
	return nil
}

// validate checks what must hold after every step.
func (w *world) validate() {
	w.t.Helper()
	starting, isolated := 0, 0
	for id, k := range w.c.workers {
		if k.id != id || !slices.Contains(k.group.workers, k) {
			w.t.Fatalf("worker %d is misplaced", id)
		}
		if k.state == Starting {
			starting++
		}
		if k.group.own() && k.state <= Ready {
			isolated++
			if len(k.assignments) > 1 {
				w.t.Fatalf("isolated worker %d has %d leases", id, len(k.assignments))
			}
		}
		for l, s := range k.assignments {
			if s.worker != k || w.c.assignments[l] != s {
				w.t.Fatalf("lease %d is misplaced", l)
			}
			slot := func(n sched.NeedWorker) sched.Slot {
				if j := w.c.jobs[n.Job]; j != nil {
					if p, _ := j.program(wire.Language(n.Func)); p.Single {
						return sched.SlotOwn
					}
				}
				return n.Slot
			}
			if n := w.needs[l]; slot(n) != k.group.key.slot || n.Job != k.group.job.id || wire.Language(n.Func) != k.group.key.language {
				w.t.Fatalf("lease %+v sits in a %v of job %d", n, k.group.key.slot, k.group.job.id)
			}
		}
	}
	if starting != w.c.starting || starting > w.c.cfg.Starts {
		w.t.Fatalf("%d start, counted %d, allowed %d", starting, w.c.starting, w.c.cfg.Starts)
	}
	if isolated != w.c.isolated {
		w.t.Fatalf("%d isolated, counted %d", isolated, w.c.isolated)
	}
}

// need asks for a worker and names the lease.
func (w *world) need(job ids.JobID, slot sched.Slot, fn string) ids.LeaseID {
	w.t.Helper()
	w.lease++
	n := sched.NeedWorker{Lease: w.lease, Job: job, Slot: slot, Func: fn, Actor: slot == sched.SlotActor || strings.HasSuffix(fn, "actor")}
	w.needs[n.Lease] = n
	w.step(FromSched{n})
	return n.Lease
}

func (w *world) release(l ids.LeaseID) {
	delete(w.needs, l)
	delete(w.ready, l)
	w.step(FromSched{sched.ReleaseWorker{Lease: l}})
}

// up registers the processes that were started.
func (w *world) up() {
	w.t.Helper()
	for _, id := range w.ids() {
		if p := w.procs[id]; p.client == 0 && !p.killed && !p.terminated {
			w.register(p)
		}
	}
}

func (w *world) register(p *proc) {
	w.client++
	p.client = w.client
	w.step(Registered{Client: p.client, Token: p.Token, PID: int32(p.Worker)})
}

// reap lets the processes that were told to end do so.
func (w *world) reap() {
	for _, id := range w.ids() {
		if p := w.procs[id]; p.drain || p.killed || p.terminated {
			w.exit(id, Exit{PID: int(id), Signal: "killed"})
		}
	}
}

func (w *world) exit(id ids.WorkerID, e Exit) {
	delete(w.procs, id)
	w.step(Exited{Worker: id, Exit: e})
}

func (w *world) ids() []ids.WorkerID {
	var out []ids.WorkerID
	for id := range w.procs {
		out = append(out, id)
	}
	slices.Sort(out)
	return out
}

// pass lets time go by, timer by timer.
func (w *world) pass(d time.Duration) {
	end := w.now + int64(d)
	for {
		i := -1
		for j, t := range w.timers {
			if t.at <= end && (i < 0 || t.at < w.timers[i].at) {
				i = j
			}
		}
		if i < 0 {
			break
		}
		t := w.timers[i]
		w.timers = slices.Delete(w.timers, i, i+1)
		w.now = max(w.now, t.at)
		w.step(t.ev)
	}
	w.now = end
}
