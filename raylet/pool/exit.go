package pool

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/internal/queue"
	"mobula/raylet/sched"
)

// String says how a process ended, and quotes its last output.
func (e Exit) String() string {
	s := fmt.Sprintf("exited with status %d", e.Status)
	if e.Signal != "" {
		s = "was ended by signal: " + e.Signal
	}
	if t := strings.TrimSpace(e.Tail); t != "" {
		s += "; the end of its stderr: " + t
	}
	return s
}

func (c *Core) onStartFailed(ev StartFailed) {
	w := c.workers[ev.Worker]
	if w == nil {
		return
	}
	c.counters.StartFailures++
	g := w.group
	c.remove(w)
	c.failAll(g, errs.New(errs.CodeRuntimeSetup, "%s: %v", w, ev.Err))
}

// onExited removes a worker from the table, and ends or moves the leases that depended on it.
func (c *Core) onExited(ev Exited) {
	w := c.workers[ev.Worker]
	if w == nil {
		return
	}
	if w.pid == 0 {
		w.pid = int32(ev.Exit.PID)
	}
	c.counters.Exited++
	started := w.client != 0
	g := w.group
	c.remove(w)
	if len(w.assignments) > 0 {
		c.counters.Crashed++
		for l := range w.assignments {
			delete(c.assignments, l)
		}
		if ls := w.others(); len(ls) > 0 {
			c.emit(ToSched{sched.WorkerGone{Worker: w.client, Leases: ls, Err: w.gone(ev.Exit), Peak: w.peak}})
		}
		if ls := slices.Sorted(maps.Keys(w.abandoned)); len(ls) > 0 {
			c.emit(ToSched{sched.WorkerGone{Worker: w.client, Leases: ls, Err: w.drainErr}})
		}
	}
	if c.jobs[g.job.id] != g.job {
		return
	}
	switch {
	case started, w.killed && !w.startTimedOut:
	case w.startTimedOut:
		c.counters.StartFailures++
		c.failAll(g, errs.New(errs.CodeRuntimeSetup, "%s did not register within %v and %v", w, c.cfg.StartTime, ev.Exit))
		return
	default:
		c.counters.StartFailures++
		if ev.Exit.Signal == unix.SIGKILL.String() {
			g.kills++
		} else {
			g.failures++
		}
		if g.failures >= MaxStartFailures || g.kills >= MaxStartKills {
			c.failAll(g, errs.New(errs.CodeRuntimeSetup, "%s %v before it registered; %d starts failed in a row", w, ev.Exit, g.failures+g.kills))
			return
		}
	}
	c.fill(g)
}

// gone is the error of the leases of a worker that is gone.
func (w *worker) gone(e Exit) *errs.Error {
	if w.err != nil {
		return w.err
	}
	if w.lost {
		return errs.New(errs.CodeWorkerCrashed, "%s closed its connection and %v", w, e)
	}
	return errs.New(errs.CodeWorkerCrashed, "%s %v", w, e)
}

// failAll fails the leases that wait for a group. The next lease tries again.
func (c *Core) failAll(g *group, err *errs.Error) {
	waiting := g.waiting.All()
	g.waiting, g.failures, g.kills = queue.Queue[*assignment]{}, 0, 0
	for _, s := range waiting {
		delete(c.assignments, s.lease)
		c.noWorker(s.lease, err)
	}
	if c.jobs[g.job.id] == g.job {
		c.fill(g)
	}
}

// onLive takes over a process that was started before this core. One of an earlier opening of its job is to end, whose end the raylet does not pass on any more:
// nobody has told the owner of it.
func (c *Core) onLive(now int64, ev Live) {
	c.nextID = max(c.nextID, ev.Worker)
	j := c.jobs[ev.Job]
	if j == nil || ev.Opening < j.opening {
		c.emit(KillProcess{Worker: ev.Worker})
		return
	}
	n := sched.NeedWorker{Slot: ev.Slot, Func: ev.Func, Process: ev.Process, Actor: ev.Actor, Memory: ev.Memory}
	g := c.groupOf(j, ev.Language, n)
	if ev.Actor { // AdoptLease says which lease it has
		g = &group{job: j, key: groupKey{language: ev.Language, slot: ev.Slot, fn: ev.Func, memory: ev.Memory, actor: ids.LeaseID(1<<63 | uint64(ev.Worker))}}
		j.groups[g.key] = g
	}
	w := &worker{id: ev.Worker, token: ev.Token, group: g, state: Starting, client: ev.Client, pid: ev.PID, idleSince: now, exitSent: ev.Draining, assignments: make(map[ids.LeaseID]*assignment)}
	g.workers = append(g.workers, w)
	c.workers[w.id] = w
	c.byToken[string(w.token)] = w
	c.starting++
	if g.own() {
		c.isolated++
	}
	switch {
	case ev.Draining:
		c.setState(w, Draining)
		c.timer(w, c.cfg.Grace)
	case ev.Client == 0:
		c.timer(w, c.cfg.StartTime)
	default:
		c.setState(w, Ready)
		c.watchIdle(w)
	}
	if ev.Client != 0 {
		c.byClient[ev.Client] = w
	}
}

// adopt assigns a lease that was granted before this core to its worker; one whose worker is gone ends.
func (c *Core) adopt(a sched.AdoptLease) {
	w := c.byClient[a.Worker]
	if w == nil {
		c.emit(ToSched{sched.WorkerGone{Worker: a.Worker, Leases: []ids.LeaseID{a.Lease},
			Err: errs.New(errs.CodeWorkerCrashed, "the worker behind client %v was gone when the node's scheduler came back", a.Worker)}})
		return
	}
	s := &assignment{lease: a.Lease, group: w.group}
	c.assignments[a.Lease] = s
	c.assign(s, w)
}

// Info describes a worker, for lists.
type Info struct {
	Worker   ids.WorkerID
	Client   ids.ClientID
	PID      int32
	Job      ids.JobID
	Language string
	Slot     sched.Slot
	Func     string
	State    State
	Leases   []ids.LeaseID
}

// List gives the worker processes in the order of their start.
func (c *Core) List() []Info {
	var out []Info
	for _, w := range c.sortedWorkers() {
		out = append(out, Info{Worker: w.id, Client: w.client, PID: w.pid, Job: w.group.job.id,
			Language: w.group.key.language, Slot: w.group.key.slot, Func: w.group.key.fn, State: w.state, Leases: slices.Sorted(maps.Keys(w.assignments))})
	}
	return out
}
