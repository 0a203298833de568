package run

import (
	"slices"
	"time"

	"mobula/graph"
	"mobula/internal/client"
	"mobula/internal/errs"
	"mobula/internal/heap"
	"mobula/wire"
)

// event is what the core steps on.
type event interface{ runEvent() }

// begin starts the graph, or goes on with it in a new core.
type begin struct{}

// resolved says that results are there; of a task with several, its first.
type resolved struct{ of []client.Watched }

// unneeded says that nobody can ask for wanted results any more; promise n is of task n-1.
type unneeded struct{ promises []uint32 }

// refused says that a task could not be submitted.
type refused struct {
	task int32
	err  error
}

// heaps says what the node's processes take, in bytes, less the store. It comes where the node has a memory limit.
type heaps struct{ bytes int64 }

func (begin) runEvent()    {}
func (resolved) runEvent() {}
func (unneeded) runEvent() {}
func (refused) runEvent()  {}
func (heaps) runEvent()    {}

// effect is what the core asks for, in order.
type effect interface{ runEffect() }

// submit gives a task to its owner.
type submit struct{ task int32 }

// release gives up a task's results.
type release struct{ task int32 }

// releasePart gives up one of them.
type releasePart struct{ task, part int32 }

// withdraw cancels a task and gives up its results.
type withdraw struct{ task int32 }

// pass fails tasks that were wanted and not submitted: each by the one before it.
type pass struct{ chain []int32 }

// tell puts an event on the graph's stream.
type tell struct{ Event }

// over ends the graph.
type over struct{}

func (submit) runEffect()      {}
func (release) runEffect()     {}
func (releasePart) runEffect() {}
func (withdraw) runEffect()    {}
func (pass) runEffect()        {}
func (tell) runEffect()        {}
func (over) runEffect()        {}

// The node, as the graph's only worker.
const node graph.WorkerID = 1

// Of how many tasks are with the owner at once.
const (
	ahead     = 2                    // for each slot, at least: one runs, the next is there when it ends
	lookahead = 2 * time.Millisecond // as many as end in this time
	mostAhead = 1024

	// A stream has at most a million items, and a graph may have more tasks: after so many events the next
	// tell of one more start or end each, and so on.
	eventsAlike = 1 << 16
)

// core is the state machine: graph.Core, and before the owner a line in the graph's order.
type core struct {
	w       *work
	g       *graph.Core
	ledger  *ledger
	threads int
	memory  *admission // nil: the node has no limit

	line     []waiting       // a heap by rank
	attempts []int32         // of each task, the one under way
	queued   []bool          // in line
	flying   int             // submitted and not resolved, those that have seceded aside
	away     int             // submitted, seceded and not resolved
	gap      float64         // ns between two results, smoothed
	last     int64           // when the last came
	forced   int64           // when a task was last let out without memory for it
	parts    map[int64]int32 // uses left of single results, by task and part
	early    []int32         // let go, and their results are here
	left     []int32         // seceded before this core let them go
	late     []int32         // with the owner since an earlier core, and not let go by this one
	news     Event
	finished bool
	out      []effect
}

type waiting struct{ rank, task int32 }

func sooner(a, b *waiting) bool { return a.rank < b.rank }

func newCore(w *work, l *ledger, has Capacity) (*core, error) {
	cfg := graph.DefaultConfig()
	cfg.Saturation = w.Saturation
	cfg.StealInterval = -1
	g, err := graph.NewCore(w.graph, cfg)
	if err != nil {
		return nil, invalid("%v", err)
	}
	n := w.graph.Len()
	c := &core{w: w, g: g, ledger: l, threads: has.Threads, attempts: make([]int32, n), queued: make([]bool, n), parts: make(map[int64]int32)}
	c.g.Step(0, graph.WorkerJoined{Worker: node, Name: "node", Threads: has.Threads, Memory: has.Memory})
	if has.Limit > 0 {
		c.memory = newAdmission(has.Limit)
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

// Step implements actors.Core.
func (c *core) Step(now int64, ev event) []effect {
	clear(c.out)
	c.out = c.out[:0]
	switch ev := ev.(type) {
	case begin:
		c.begin(now)
	case resolved:
		c.heard(now, ev.of)
	case unneeded:
		c.unwant(now, ev.promises)
	case refused:
		c.land(ev.task)
		c.failed(now, ev.task, ev.err)
	case heaps:
		c.memory.look(ev.bytes)
	case seceded:
		c.secede(now, ev)
	}
	c.takeEarly(now)
	c.leave(now)
	c.dropLate()
	c.let(now)
	c.tellNews(now)
	c.ledger.gauges.write(c)
	return c.out
}

func (c *core) emit(e effect) { c.out = append(c.out, e) }

// begin takes over what an earlier core had made, and what it has with the owner.
func (c *core) begin(now int64) {
	c.last = now
	if c.ledger.begun == 0 {
		c.ledger.begun = now
	}
	for t := range c.ledger.tasks {
		switch e := &c.ledger.tasks[t]; e.state {
		case made:
			c.step(now, graph.Holds{Task: int32(t), Worker: node, Bytes: e.bytes})
		case failed:
			c.step(now, graph.Broken{Task: int32(t), Err: e.failure})
		}
	}
	c.step(now, graph.Start{})
	c.step(now, graph.Want{Tasks: c.ledger.unwanted, Off: true})
	for t := range c.ledger.tasks {
		if c.ledger.tasks[t].state == sent && c.g.State(int32(t)) != graph.Processing {
			c.late = append(c.late, int32(t))
		}
	}
}

// unwant lets go of results that nobody needs. What only they needed is not run.
func (c *core) unwant(now int64, promises []uint32) {
	n := len(c.ledger.unwanted)
	for _, p := range promises {
		if t := int64(p) - 1; t >= 0 && t < int64(c.w.graph.Len()) {
			c.ledger.unwanted = append(c.ledger.unwanted, int32(t))
		}
	}
	c.step(now, graph.Want{Tasks: c.ledger.unwanted[n:], Off: true})
}

// step passes an event on and turns what graph.Core asks for into effects.
func (c *core) step(now int64, ev graph.Event) {
	for _, e := range c.g.Step(now, ev) {
		switch e := e.(type) {
		case graph.Run:
			c.attempts[e.Task] = e.Attempt
			switch c.ledger.tasks[e.Task].state {
			case sent: // by the core before this one: its result will come
				c.fly(e.Task)
				if c.ledger.tasks[e.Task].away {
					c.left = append(c.left, e.Task)
				}
			case unsent:
				c.queued[e.Task] = true
				heap.Push(&c.line, waiting{e.Rank, e.Task}, sooner)
			default: // its result came before this core let it go
				c.early = append(c.early, e.Task)
			}
		case graph.Stop:
			switch {
			case c.queued[e.Task]:
				c.queued[e.Task] = false // it stays in line, and is passed over
			case c.ledger.tasks[e.Task].state == sent:
				c.land(e.Task)
				c.emit(withdraw{e.Task})
			default: // its result is here
				c.emit(release{e.Task})
			}
		case graph.Free:
			c.emit(release{e.Task})
		case graph.Failed:
			c.emit(pass{e.Chain})
		case graph.Finished:
			c.finished = true
		}
	}
	c.ledger.peak = max(c.ledger.peak, c.g.Bytes())
}

// dropLate withdraws what an earlier core gave to the owner and nobody needs any more.
func (c *core) dropLate() {
	c.late = slices.DeleteFunc(c.late, func(t int32) bool {
		switch c.g.State(t) {
		case graph.Waiting, graph.NoWorker, graph.Queued:
			return false // this core may come to it
		case graph.Processing, graph.Memory:
			return true // it is as any other
		}
		switch c.ledger.tasks[t].state {
		case sent:
			c.emit(withdraw{t})
		case made:
			c.emit(release{t})
		}
		return true
	})
}

// heard takes results.
func (c *core) heard(now int64, of []client.Watched) {
	if n := len(of); n > 0 {
		gap := float64(now-c.last) / float64(n)
		c.last = now
		if c.gap == 0 {
			c.gap = gap
		}
		c.gap += (gap - c.gap) / 8
	}
	for _, x := range of {
		t := int32(x.Token)
		e := &c.ledger.tasks[t]
		if e.state != sent {
			continue // it was given up meanwhile
		}
		if x.Result.Kind == wire.ResultError {
			e.state, e.failure = failed, x.Result.Err
			if x.Result.Err == nil {
				e.failure = errs.New(errs.CodeUnknown, "%q failed, and no reason was given", c.w.Keys[t])
			}
		} else {
			e.state, e.bytes = made, int64(x.Result.Size)*int64(c.w.returns(t))
			c.ledger.ran++
			if c.w.Events {
				c.news.Done = append(c.news.Done, t)
			}
			c.used(t)
		}
		if c.g.State(t) == graph.Processing { // else this core has not come to it yet: the one before had sent it
			c.land(t)
			c.ended(now, t)
		}
	}
}

// takeEarly passes on what was there when it was let go.
func (c *core) takeEarly(now int64) {
	for len(c.early) > 0 {
		t := c.early[0]
		c.early = c.early[1:]
		if c.g.State(t) == graph.Processing { // else another's failure has made it needless
			c.ended(now, t)
		}
	}
}

// ended passes on how a task ended that graph.Core has let go.
func (c *core) ended(now int64, t int32) {
	e := &c.ledger.tasks[t]
	if e.state == failed {
		c.failed(now, t, e.failure)
		return
	}
	c.step(now, graph.Done{Task: t, Attempt: c.attempts[t], Worker: node, Bytes: e.bytes})
}

// used counts that a task has taken its dependencies' single results.
func (c *core) used(t int32) {
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
			c.emit(releasePart{d, c.w.parts[t][j]})
		}
	}
}

func (c *core) failed(now int64, t int32, err error) {
	c.ledger.failures++
	if c.w.Events {
		c.news.Failed = append(c.news.Failed, t)
	}
	c.step(now, graph.Failure{Task: t, Attempt: c.attempts[t], Worker: node, Err: err})
}

// let submits what comes first, as much as is worth having with the owner and as there is memory for.
func (c *core) let(now int64) {
	for len(c.line) > 0 && c.flying < c.window() {
		t := c.line[0].task
		if c.queued[t] {
			if !c.fits(now, t) {
				return
			}
			c.queued[t] = false
			c.fly(t)
			if c.w.Events {
				c.news.Started = append(c.news.Started, t)
			}
			c.emit(submit{t})
		}
		heap.Pop(&c.line, sooner)
	}
}

// fits tells whether there is memory for a task beside those that run. Where nothing ends for long, another runs all the same.
func (c *core) fits(now int64, t int32) bool {
	if c.memory == nil || c.flying == 0 || c.memory.fits(c.share(t)) {
		return true
	}
	if now-max(c.last, c.forced) <= int64(patience) {
		return false
	}
	c.forced = now
	return true
}

func (c *core) share(t int32) share {
	args := int64(0)
	for _, d := range c.w.deps[t] {
		args += c.ledger.tasks[d].bytes / int64(c.w.returns(d))
	}
	return c.memory.share(graph.KeyPrefix(c.w.graph.Group(t)), args)
}

// fly counts a task that is with the owner, and land one that is not any more. One that has seceded takes memory only.
func (c *core) fly(t int32) {
	if c.ledger.tasks[t].away {
		c.away++
	} else {
		c.flying++
	}
	if c.memory != nil {
		c.memory.fly(t, c.share(t))
	}
}

func (c *core) land(t int32) {
	if e := &c.ledger.tasks[t]; e.away {
		e.away = false
		c.away--
	} else {
		c.flying--
	}
	if c.memory != nil {
		c.memory.land(t)
	}
}

// window is how many tasks may be with the owner: two a slot, or, where tasks are so short that
// telling takes as long, as many as end in a moment.
func (c *core) window() int {
	n := ahead * c.threads
	if c.gap > 0 {
		n = max(n, min(int(float64(lookahead)/c.gap), mostAhead))
	}
	return n
}

func (c *core) tellNews(now int64) {
	if l := c.ledger; c.finished {
		c.news.Summary = &Summary{Tasks: c.w.graph.Len(), Ran: l.ran, Failed: l.failures, Peak: l.peak, Elapsed: now - l.begun}
	}
	if n := &c.news; n.Summary != nil || len(n.Failed) > 0 || len(n.Started)+len(n.Done) > c.ledger.told/eventsAlike {
		c.ledger.told++
		c.emit(tell{*n})
		c.news = Event{}
	}
	if c.finished {
		c.finished = false
		c.emit(over{})
	}
}
