package run

import (
	"slices"
	"time"

	"mobula/graph"
	"mobula/internal/errs"
	"mobula/internal/heap"
	"mobula/internal/queue"
	"mobula/wire"
)

// Capacity is what there is for graphs: a node, or all nodes of its cluster.
type Capacity struct {
	Threads int   // slots
	Memory  int64 // bytes of results that may be held before root tasks wait; 0: unknown
}

// The graph's only worker: which node runs a task is not decided here.
const node graph.WorkerID = 1

// Bounds on how many tasks are with the owner at once.
const (
	tasksPerSlot = 2                    // per slot, at least: one runs, the next is there when it ends
	lookahead    = 2 * time.Millisecond // at least as many as end in this time
	mostAhead    = 1024

	// A stream has at most a million items, and a graph may have more tasks: after this many events each event
	// reports one more start or end, and so on.
	eventsAlike = 1 << 16
)

// Core is the state machine: graph.Core, and between it and the owner a queue in the graph's order.
type Core struct {
	w       *Work
	g       *graph.Core
	ledger  *Ledger
	threads int
	memory  *admission // nil: the node has no limit

	line         []waiting          // a heap by rank
	attempts     []int32            // the present attempt of each task
	queued       []bool             // in line
	inFlight     int                // submitted and not resolved, without those that have seceded
	seceded      int                // submitted, seceded and not resolved
	gap          float64            // ns between two results, smoothed
	last         int64              // when the last one came
	forced       int64              // when a task was last submitted without memory for it
	parts        map[int64]int32    // uses left of single results, by task and part
	earlyResults queue.Queue[int32] // tasks let go whose results are here already
	earlySeceded queue.Queue[int32] // tasks that seceded before this core let them go
	inherited    []int32            // tasks with the owner since an earlier core, and not let go by this one
	news         StreamEvent
	finished     bool
	out          []Effect
}

type waiting struct{ rank, task int32 }

func sooner(a, b *waiting) bool { return a.rank < b.rank }

// NewCore makes the core of a graph, or of the part of it that is left by the ledger. The limit is how many bytes the node's processes and its store may take
// together; 0: there is none.
func NewCore(w *Work, l *Ledger, has Capacity, limit int64) (*Core, error) {
	cfg := graph.DefaultConfig()
	cfg.Saturation = w.Saturation
	cfg.StealInterval = -1
	g, err := graph.NewCore(w.graph, cfg)
	if err != nil {
		return nil, invalid("%v", err)
	}
	n := w.graph.Len()
	c := &Core{w: w, g: g, ledger: l, threads: has.Threads, attempts: make([]int32, n), queued: make([]bool, n), parts: make(map[int64]int32)}
	c.g.Step(0, graph.WorkerJoined{Worker: node, Name: "node", Threads: has.Threads, Memory: has.Memory})
	if limit > 0 {
		c.memory = newAdmission(limit)
	}
	if w.parts != nil {
		for t, deps := range w.deps {
			for j, d := range deps {
				if w.returns(d) > 1 {
					c.parts[partKey(d, w.parts[t][j])]++
				}
			}
		}
	}
	return c, nil
}

func partKey(t, part int32) int64 { return int64(t)<<32 | int64(part) }

// Step takes an event at a time in nanoseconds. The slice is valid until the next Step.
func (c *Core) Step(now int64, ev Event) []Effect {
	clear(c.out)
	c.out = c.out[:0]
	switch ev := ev.(type) {
	case Begin:
		c.begin(now)
	case Resolved:
		c.onResolved(now, ev.Of)
	case Unneeded:
		c.unwant(now, ev.Promises)
	case Refused:
		c.onRefused(now, ev)
	case Heaps:
		c.memory.observe(ev.Bytes)
	case Resized:
		c.threads = ev.Capacity.Threads
		c.step(now, graph.WorkerResized{Worker: node, Threads: ev.Capacity.Threads, Memory: ev.Capacity.Memory})
	case Seceded:
		c.secede(now, ev)
	}
	c.takeEarlyResults(now)
	c.leave(now)
	c.dropInherited()
	c.submitReady(now)
	c.emitEvents(now)
	return c.out
}

func (c *Core) emit(e Effect) { c.out = append(c.out, e) }

// begin takes over the results that an earlier core got, and the tasks that it has with the owner.
func (c *Core) begin(now int64) {
	c.last = now
	if c.ledger.begun == 0 {
		c.ledger.begun = now
	}
	for t := range c.ledger.tasks {
		switch e := &c.ledger.tasks[t]; e.state {
		case Made:
			c.step(now, graph.Holds{Task: int32(t), Worker: node, Bytes: e.bytes})
		case Failed:
			c.step(now, graph.Broken{Task: int32(t), Err: e.failure})
		}
	}
	c.step(now, graph.Start{})
	c.step(now, graph.Want{Tasks: c.ledger.unwanted, Off: true})
	for t := range c.ledger.tasks {
		if c.ledger.tasks[t].state == Sent && c.g.State(int32(t)) != graph.Processing {
			c.inherited = append(c.inherited, int32(t))
		}
	}
}

// unwant gives up results that nobody needs. Tasks that only they needed do not run.
func (c *Core) unwant(now int64, promises []uint32) {
	n := len(c.ledger.unwanted)
	for _, p := range promises {
		if t := int64(p) - 1; t >= 0 && t < int64(c.w.graph.Len()) {
			c.ledger.unwanted = append(c.ledger.unwanted, int32(t))
		}
	}
	c.step(now, graph.Want{Tasks: c.ledger.unwanted[n:], Off: true})
}

// step passes an event on and turns what graph.Core asks for into effects.
func (c *Core) step(now int64, ev graph.Event) {
	for _, e := range c.g.Step(now, ev) {
		switch e := e.(type) {
		case graph.Run:
			c.attempts[e.Task] = e.Attempt
			switch c.ledger.tasks[e.Task].state {
			case Sent: // submitted by the core before this one: its result will come
				c.addInFlight(e.Task)
				if c.ledger.tasks[e.Task].seceded {
					c.earlySeceded.Push(e.Task)
				}
			case Unsent:
				c.queued[e.Task] = true
				heap.Push(&c.line, waiting{e.Rank, e.Task}, sooner)
			default: // its result came before this core let it go
				c.earlyResults.Push(e.Task)
			}
		case graph.Stop:
			switch {
			case c.queued[e.Task]:
				c.queued[e.Task] = false // it stays in the heap, and is skipped there
			case c.ledger.tasks[e.Task].state == Sent:
				c.removeInFlight(e.Task)
				c.emit(Withdraw{e.Task})
			default: // its result is here
				c.emit(Release{e.Task})
			}
		case graph.Free:
			c.emit(Release{e.Task})
		case graph.Failed:
			c.emit(Pass{e.Chain})
		case graph.Finished:
			c.finished = true
		}
	}
	c.ledger.peak = max(c.ledger.peak, c.g.Bytes())
}

// dropInherited withdraws tasks that an earlier core gave to the owner and nobody needs any more.
func (c *Core) dropInherited() {
	c.inherited = slices.DeleteFunc(c.inherited, func(t int32) bool {
		switch s := c.g.State(t); {
		case letsGo(s):
			return false
		case s == graph.Processing, s == graph.Memory:
			return true // it is like any other now
		}
		switch c.ledger.tasks[t].state {
		case Sent:
			c.emit(Withdraw{t})
		case Made:
			c.emit(Release{t})
		}
		return true
	})
}

// onResolved takes results.
func (c *Core) onResolved(now int64, of []Result) {
	if n := len(of); n > 0 {
		gap := float64(now-c.last) / float64(n)
		c.last = now
		if c.gap == 0 {
			c.gap = gap
		}
		c.gap += (gap - c.gap) / 8
	}
	for _, x := range of {
		t := x.Task
		e := &c.ledger.tasks[t]
		if e.state != Sent {
			continue // the task was given up meanwhile
		}
		if x.Result.Kind == wire.ResultError {
			e.state, e.failure = Failed, x.Result.Err
			if x.Result.Err == nil {
				e.failure = errs.New(errs.CodeUnknown, "%q failed, and no reason was given", c.w.Keys[t])
			}
		} else {
			e.state, e.bytes = Made, int64(x.Result.Size)*int64(c.w.returns(t))
			c.ledger.ran++
			if c.w.Events {
				c.news.Done = append(c.news.Done, t)
			}
			c.used(t)
		}
		if c.g.State(t) == graph.Processing { // else the core before has sent it and this one has not let it go yet
			c.removeInFlight(t)
			c.ended(now, t)
		}
	}
}

// takeEarlyResults passes on results that were there before their tasks were let go.
func (c *Core) takeEarlyResults(now int64) {
	for c.earlyResults.Len() > 0 {
		t := c.earlyResults.Pop()
		if c.g.State(t) == graph.Processing { // else another's failure has made it unneeded
			c.ended(now, t)
		}
	}
}

// ended tells graph.Core how a task ended that it has let go.
func (c *Core) ended(now int64, t int32) {
	e := &c.ledger.tasks[t]
	if e.state == Failed {
		c.failed(now, t, e.failure)
		return
	}
	c.step(now, graph.Done{Task: t, Attempt: c.attempts[t], Worker: node, Bytes: e.bytes})
}

// used notes that a task has taken single results of its dependencies.
func (c *Core) used(t int32) {
	if c.w.parts == nil {
		return
	}
	for j, d := range c.w.deps[t] {
		if c.w.returns(d) == 1 {
			continue
		}
		k := partKey(d, c.w.parts[t][j])
		if c.parts[k]--; c.parts[k] == 0 {
			delete(c.parts, k)
			c.emit(ReleasePart{d, c.w.parts[t][j]})
		}
	}
}

// onRefused fails a task that was not submitted. Nobody else has its error, so the graph ends with it.
func (c *Core) onRefused(now int64, ev Refused) {
	t, state := ev.Task, c.g.State(ev.Task)
	e := &c.ledger.tasks[t]
	if e.state != Unsent || state != graph.Processing && !letsGo(state) {
		return // it was submitted after all, by the core that came after; or nobody needs it
	}
	e.state, e.failure = Failed, ev.Err
	if c.ledger.refused == nil {
		c.ledger.refused = ev.Err
	}
	switch {
	case state != graph.Processing:
		return // when it does, takeEarlyResults tells of it
	case c.queued[t]:
		c.queued[t] = false
	default:
		c.removeInFlight(t)
	}
	c.failed(now, t, ev.Err)
}

// letsGo tells whether a core may still let a task go that is in state s.
func letsGo(s graph.State) bool {
	return s == graph.Waiting || s == graph.NoWorker || s == graph.Queued
}

func (c *Core) failed(now int64, t int32, err error) {
	c.ledger.failures++
	if c.w.Events {
		c.news.Failed = append(c.news.Failed, t)
	}
	c.step(now, graph.Failure{Task: t, Attempt: c.attempts[t], Worker: node, Err: err})
}

// submitReady submits the first tasks in line, as many as the owner should have and as there is memory for.
func (c *Core) submitReady(now int64) {
	for len(c.line) > 0 && c.inFlight < c.window() {
		t := c.line[0].task
		if c.queued[t] {
			if !c.fits(now, t) {
				return
			}
			c.queued[t] = false
			c.addInFlight(t)
			if c.w.Events {
				c.news.Started = append(c.news.Started, t)
			}
			c.emit(Submit{t})
		}
		heap.Pop(&c.line, sooner)
	}
}

// fits tells whether there is memory for a task beside those that run. If nothing ends for long, another runs all the same.
func (c *Core) fits(now int64, t int32) bool {
	if c.memory == nil || c.inFlight == 0 || c.memory.fits(c.share(t)) {
		return true
	}
	if now-max(c.last, c.forced) <= int64(patience) {
		return false
	}
	c.forced = now
	return true
}

func (c *Core) share(t int32) share {
	args := int64(0)
	for _, d := range c.w.deps[t] {
		args += c.ledger.tasks[d].bytes / int64(c.w.returns(d))
	}
	return c.memory.share(graph.KeyPrefix(c.w.graph.Group(t)), args)
}

// addInFlight counts a task as with the owner, and land ends that. A task that has seceded counts only for its memory.
func (c *Core) addInFlight(t int32) {
	if c.ledger.tasks[t].seceded {
		c.seceded++
	} else {
		c.inFlight++
	}
	if c.memory != nil {
		c.memory.add(t, c.share(t))
	}
}

func (c *Core) removeInFlight(t int32) {
	if e := &c.ledger.tasks[t]; e.seceded {
		e.seceded = false
		c.seceded--
	} else {
		c.inFlight--
	}
	if c.memory != nil {
		c.memory.remove(t)
	}
}

// window is how many tasks may be with the owner: two per slot, or if tasks are about as short as a message takes,
// as many as end in lookahead.
func (c *Core) window() int {
	n := tasksPerSlot * c.threads
	if c.gap > 0 {
		n = max(n, min(int(float64(lookahead)/c.gap), mostAhead))
	}
	return n
}

func (c *Core) emitEvents(now int64) {
	if l := c.ledger; c.finished {
		c.news.Summary = &Summary{Tasks: c.w.graph.Len(), Ran: l.ran, Failed: l.failures, Peak: l.peak, Elapsed: now - l.begun}
	}
	if n := &c.news; n.Summary != nil || len(n.Failed) > 0 || len(n.Started)+len(n.Done) > c.ledger.events/eventsAlike {
		c.ledger.events++
		c.emit(Tell{*n})
		c.news = StreamEvent{}
	}
	if c.finished {
		c.finished = false
		c.emit(Over{Err: c.ledger.refused})
	}
}

// Counts is the progress of a graph. Its tasks are waiting, queued, processing, done or failed, or were never
// needed.
type Counts struct {
	Waiting    int // for their arguments
	Queued     int // root tasks that could run and are withheld
	Processing int // with their owner, or in line to it
	InLine     int // of Processing: in line to the owner
	Done       int
	Failed     int   // by an error of their own
	Bytes      int64 // of results that are held
	Peak       int64 // the highest value of Bytes
}

// Counts gives the progress of the graph. It looks at no task.
func (c *Core) Counts() Counts {
	processing := c.g.Count(graph.Processing)
	return Counts{
		Waiting: c.g.Count(graph.Waiting) + c.g.Count(graph.NoWorker), Queued: c.g.Count(graph.Queued), Processing: processing, InLine: processing - c.inFlight - c.seceded,
		Done: int(c.ledger.ran), Failed: c.ledger.failures, Bytes: c.g.Bytes(), Peak: c.ledger.peak,
	}
}
