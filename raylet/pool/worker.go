package pool

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/internal/queue"
	"mobula/raylet/sched"
)

// State is the state of a worker.
type State uint8

// The states of a worker.
const (
	Queued State = iota + 1
	Starting
	Ready
	Draining
	Dead
	stateEnd
)

// String names the state.
func (s State) String() string {
	return [...]string{"none", "queued", "starting", "ready", "draining", "dead"}[min(s, stateEnd)%stateEnd]
}

// transitions is the table of allowed state changes.
var transitions = [stateEnd]map[State]bool{
	Queued:   {Starting: true, Dead: true},
	Starting: {Ready: true, Draining: true, Dead: true},
	Ready:    {Draining: true, Dead: true},
	Draining: {Dead: true},
}

// worker is one row of the table.
type worker struct {
	id          ids.WorkerID
	token       []byte
	group       *group
	state       State
	client      ids.ClientID
	pid         int32
	virtual     bool
	assignments map[ids.LeaseID]*assignment

	idleSince     int64
	startTimedOut bool        // did not register in time
	exitSent      bool        // to exit
	leaving       bool        // it is to end by itself: Terminate comes with the timer
	killed        bool        // KillProcess is sent
	lost          bool        // its connection has closed
	err           *errs.Error // why it is killed, if not by its own fault
	drainErr      *errs.Error // why it is drained, for the leases that were abandoned
	peak          uint64
	seq           uint64 // of its timer
	abandoned     map[ids.LeaseID]bool
}

// String names the worker as errors do.
func (w *worker) String() string {
	k := w.group.key
	what := "isolated " + k.fn
	switch {
	case k.process != "":
		what = k.slot.String() + " " + k.process
	case k.slot != sched.SlotOwn:
		what = k.slot.String()
	case k.actor != 0:
		what = "isolated actor " + k.fn
	case k.fn == "":
		what = k.language
	}
	return fmt.Sprintf("worker %v (%s of job %v, pid %d)", w.id, what, w.group.job.id, w.pid)
}

// groupKey tells which leases a worker may serve.
type groupKey struct {
	language string // of the program that its workers run
	slot     sched.Slot
	fn       string      // of an isolated worker; empty: any
	process  string      // of an actor host: its name
	memory   int64       // of an isolated worker
	actor    ids.LeaseID // of an isolated actor: its own lease
	system   bool        // the node's own functions
}

// group has the workers that serve the same leases, and the leases that wait for one.
type group struct {
	job      *job
	key      groupKey
	waiting  queue.Queue[*assignment]
	workers  []*worker // queued to draining
	failures int       // starts failed in a row
	kills    int       // starts killed in a row, which are not failures
}

func (g *group) own() bool { return g.key.slot == sched.SlotOwn }

func (g *group) drop(w *worker) {
	g.workers = slices.DeleteFunc(g.workers, func(o *worker) bool { return o == w })
}

func (g *group) copyWorkers() []*worker { return slices.Clone(g.workers) }

// pendingWorkers counts the workers that will be ready.
func (g *group) pendingWorkers() (n int) {
	for _, w := range g.workers {
		if w.state == Queued || w.state == Starting {
			n++
		}
	}
	return n
}

// free finds a worker that takes one more lease.
func (g *group) free() *worker {
	for _, w := range g.workers {
		if w.state == Ready && (!g.own() || len(w.assignments) == 0) {
			return w
		}
	}
	return nil
}

func (j *job) sorted() []*group {
	return slices.SortedFunc(maps.Values(j.groups), func(a, b *group) int {
		return cmp.Or(strings.Compare(a.key.language, b.key.language), cmp.Compare(a.key.slot, b.key.slot), strings.Compare(a.key.fn, b.key.fn), strings.Compare(a.key.process, b.key.process),
			cmp.Compare(a.key.memory, b.key.memory), cmp.Compare(a.key.actor, b.key.actor), ordered(a.key.system, b.key.system))
	})
}

// ordered puts false before true.
func ordered(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	}
	return -1
}

func (c *Core) sortedWorkers() []*worker {
	return slices.SortedFunc(maps.Values(c.workers), func(a, b *worker) int { return cmp.Compare(a.id, b.id) })
}

// groupOf finds the group that serves a lease, or makes it.
func (c *Core) groupOf(j *job, language string, n sched.NeedWorker) *group {
	k := groupKey{language: language, slot: n.Slot, process: n.Process}
	if n.Slot == sched.SlotOwn {
		k.fn, k.memory = n.Func, n.Memory
		if n.Actor {
			k.actor = n.Lease
		}
	}
	return j.group(k)
}

func (j *job) group(k groupKey) *group {
	g := j.groups[k]
	if g == nil {
		g = &group{job: j, key: k}
		j.groups[k] = g
	}
	return g
}

// dropIfEmpty removes a group of isolated workers, or of a named host, if it has no worker and nobody waits for one.
func (c *Core) dropIfEmpty(g *group) {
	if (g.own() || g.key.process != "") && len(g.workers) == 0 && g.waiting.Len() == 0 {
		delete(g.job.groups, g.key)
	}
}

// setState changes a worker's state and keeps the counts. A change that is not in the table is a bug in this
// package.
func (c *Core) setState(w *worker, to State) {
	if w.state == to {
		return
	}
	if !transitions[w.state][to] {
		panic(fmt.Sprintf("pool: %s cannot go from %v to %v", w, w.state, to))
	}
	counted := func(s State) bool { return w.group.own() && s >= Queued && s <= Ready }
	if counted(w.state) && !counted(to) {
		c.isolated--
	}
	if w.state == Starting {
		c.starting--
	}
	if to == Starting {
		c.starting++
	}
	w.state = to
}

// timer sets the worker's one timer anew.
func (c *Core) timer(w *worker, d time.Duration) {
	w.seq++
	c.emit(After{D: d, Ev: expired{worker: w.id, seq: w.seq}})
}

// kill ends a worker's process. Its leases end only when the process is gone: until then it holds memory and may
// still run.
func (c *Core) kill(w *worker, why *errs.Error) {
	if w.err == nil {
		w.err = why
	}
	if w.state == Queued {
		c.unqueue(w)
		return
	}
	c.setState(w, Draining)
	if !w.killed {
		w.killed = true
		c.emit(KillProcess{Worker: w.id})
	}
	c.timer(w, c.cfg.Grace)
}

// retire tells a worker that has no more work to exit.
func (c *Core) retire(w *worker) {
	c.setState(w, Draining)
	if !w.exitSent {
		w.exitSent = true
		c.emit(SendDrain{Worker: w.id, Client: w.client})
		c.timer(w, c.cfg.Grace)
	}
}

func (c *Core) onExpired(ev expired) {
	w := c.workers[ev.worker]
	if w == nil || w.seq != ev.seq {
		return
	}
	switch {
	case w.state == Starting:
		w.startTimedOut = true
		c.kill(w, nil)
	case w.leaving && !w.killed:
		w.leaving = false
		c.finish(w)
	case !w.killed:
		c.kill(w, nil)
	default: // the kernel does not let the killed process go: go on without it
		c.onExited(Exited{Worker: w.id, Exit: Exit{PID: int(w.pid), Signal: "killed"}})
	}
}
