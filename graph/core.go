package graph

import (
	"cmp"
	"fmt"
	"slices"
)

// Flags of a task.
const (
	isWanted   uint8 = 1 << iota
	isFresh          // in Core.fresh
	isLong           // seceded
	isRecalled       // asked back from its worker
	isEarly          // counted by the heuristic for roots when it was placed
)

const none = int32(-1)

// task is a task's state. It has no pointer, so that a graph of millions is nothing to the collector.
type task struct {
	state   State
	flags   uint8
	deaths  uint8
	tries   uint8
	attempt int32
	waits   int32 // inputs that are not in memory
	users   int32 // active dependents
	alive   int32 // dependents that are not forgotten
	worker  int32 // index of the worker that processes it
	at      int32 // its place there, or among the stranded
	copies  int32 // first of its copies
	blame   int32 // the dependency through which it failed; itself, where it failed itself
	bytes   int64
	est     int64 // what it counts in its worker's occupancy
}

// Counters count since the core was made.
type Counters struct {
	Done, Retried, Lost, Stolen, Fetches uint64
	BytesMoved                           int64
}

// Core schedules one graph. It is not safe for concurrent use.
type Core struct {
	g        *Graph
	cfg      Config
	now      int64
	tasks    []task
	copies   []replica
	spare    int32 // first unused entry of copies
	errs     map[int32]error
	workers  []*worker // by index; nil once left
	live     []*worker // those that are there, in order of arrival
	index    map[WorkerID]int32
	threads  int   // of all live workers
	memory   int64 // bytes that they may hold
	unsaid   int   // of them, those that said nothing
	open     []*worker
	fresh    []int32 // waiting, with all inputs in memory: to be placed at the end of the step
	stranded []int32
	stack    []int32
	known    []measure // by group
	kinds    []measure // by prefix
	all      measure
	roots    rootQueue
	left     int // wanted, and neither in memory nor erred
	inMemory int64
	peak     int64 // the most that it was
	count    [numStates]int
	seceded  int     // of the tasks processing
	stole    int64   // when work was stolen last
	ended    *worker // where a task ended in this step
	turn     int
	started  bool
	said     bool
	counters Counters
	out      []Effect
}

// rootQueue holds root tasks that are withheld, one kind a policy.
type rootQueue interface {
	// takes tells whether a root task is to be withheld.
	takes(t int32) bool
	// push takes a root task that has become ready.
	push(c *Core, t int32)
	// settle assigns what may run now.
	settle(c *Core)
	// gone tells of a worker that left.
	gone(w *worker)
}

// NewCore makes a core for a graph.
func NewCore(g *Graph, cfg Config) (*Core, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	c := &Core{
		g: g, cfg: cfg,
		tasks: make([]task, g.Len()),
		spare: none,
		errs:  make(map[int32]error),
		index: make(map[WorkerID]int32),
		known: make([]measure, len(g.groups)),
		kinds: make([]measure, len(g.kinds)),
	}
	for i := range c.tasks {
		c.tasks[i] = task{worker: none, copies: none, blame: none, alive: int32(len(g.up.of(int32(i))))}
	}
	c.count[Released] = g.Len()
	switch cfg.Policy {
	case Withhold:
		c.roots = &plainQueue{}
	case CoAssign:
		c.roots = newBatches(g)
	default:
		c.roots = newHomes(g)
	}
	return c, nil
}

// Step takes one event and says what to do. The slice is the core's, valid until the next Step.
func (c *Core) Step(now int64, ev Event) []Effect {
	c.now = now
	clear(c.out)
	c.out = c.out[:0]
	switch ev := ev.(type) {
	case Start:
		c.onStart()
	case WorkerJoined:
		c.onJoined(ev)
	case WorkerLeft:
		c.onLeft(ev)
	case Pause:
		if w := c.worker(ev.Worker); w != nil {
			w.paused = true
		}
	case Resume:
		if w := c.worker(ev.Worker); w != nil {
			w.paused = false
			c.opened(w)
			c.unstrand()
		}
	case Holds:
		c.onHolds(ev)
	case Broken:
		if !c.started && c.tasks[ev.Task].state == Released {
			c.failFor(ev.Task, ev.Err)
		}
	case Done:
		c.onDone(ev)
	case Failure:
		c.onFailure(ev)
	case Fetched:
		c.onFetched(ev)
	case FetchFailed:
		c.onFetchFailed(ev)
	case LongRunning:
		c.secede(ev.Task, ev.Attempt, true)
	case Rejoined:
		c.secede(ev.Task, ev.Attempt, false)
	case Recalled:
		c.onRecalled(ev)
	case Want:
		c.onWant(ev)
	case Cancel:
		c.onCancel(ev)
	case Tick:
		c.steal()
	default:
		panic(fmt.Sprintf("graph: unknown event %T", ev)) // a fault of the program: supervision reports it
	}
	c.placeFresh()
	if c.started {
		c.roots.settle(c)
		if c.ended != nil {
			c.stealIfIdle(c.ended)
			c.ended = nil
		}
		if c.left == 0 && !c.said {
			c.said = true
			c.emit(Finished{})
		}
	}
	return c.out
}

// State gives a task's state.
func (c *Core) State(t int32) State { return c.tasks[t].state }

// Err gives why a task failed, or nil.
func (c *Core) Err(t int32) error {
	if c.tasks[t].state != Erred {
		return nil
	}
	chain := c.chain(t)
	return c.errs[chain[len(chain)-1]]
}

// Counters gives the counters.
func (c *Core) Counters() Counters { return c.counters }

// Count gives how many tasks are in a state.
func (c *Core) Count(s State) int { return c.count[s] }

// Bytes gives the bytes that results hold, copies included.
func (c *Core) Bytes() int64 { return c.inMemory }

func (c *Core) emit(e Effect) { c.out = append(c.out, e) }

// to moves a task in its table.
func (c *Core) to(t int32, m move) {
	x := &c.tasks[t]
	s := table[x.state][m]
	if s == illegal {
		panic(fmt.Sprintf("graph: %s: no %v from %v", c.g.Key(t), m, x.state))
	}
	c.count[x.state]--
	c.count[s]++
	x.state = s
}

func (c *Core) onStart() {
	if c.started {
		return
	}
	c.started = true
	c.want(c.g.wanted)
	for i := range c.tasks {
		t := int32(i)
		if x := &c.tasks[t]; x.state == Memory && x.users == 0 {
			c.drop(t)
		}
		c.forget(t)
	}
}

func (c *Core) onHolds(ev Holds) {
	w := c.worker(ev.Worker)
	if w == nil || c.copyAt(ev.Task, w.index) != none {
		return
	}
	x := &c.tasks[ev.Task]
	switch {
	case c.started:
		c.emit(Free{Task: ev.Task, Workers: []WorkerID{w.id}})
		return
	case x.state == Released:
		c.to(ev.Task, onAdopt)
		x.bytes = max(ev.Bytes, 0)
	}
	c.addCopy(ev.Task, w, none)
}

func (c *Core) onWant(ev Want) {
	if ev.Off {
		for _, t := range ev.Tasks {
			c.unwant(t)
		}
		return
	}
	c.want(ev.Tasks)
}

func (c *Core) want(ts []int32) {
	for _, t := range ts {
		x := &c.tasks[t]
		if x.flags&isWanted != 0 {
			continue
		}
		if x.state == Forgotten {
			c.emit(Failed{Task: t, Err: ErrForgotten, Chain: []int32{t}})
			continue
		}
		x.flags |= isWanted
		switch x.state {
		case Memory:
			c.emit(Result{Task: t, Worker: c.holder(t), Bytes: x.bytes})
		case Erred:
			c.tellFailed(t)
		default:
			c.left++
			c.said = false
			c.need(t)
		}
	}
}

func (c *Core) unwant(t int32) {
	x := &c.tasks[t]
	if x.flags&isWanted == 0 {
		return
	}
	x.flags &^= isWanted
	if x.state.active() {
		c.left--
	}
	if x.users == 0 {
		c.drop(t)
	}
	c.forget(t)
}

// need makes a released task, and what it lacks, wait to run.
func (c *Core) need(t int32) {
	base := len(c.stack)
	c.stack = append(c.stack, t)
	for len(c.stack) > base {
		t := c.pop()
		x := &c.tasks[t]
		if x.state != Released || x.users == 0 && x.flags&isWanted == 0 {
			continue // what asked for it may have failed meanwhile
		}
		c.to(t, onNeed)
		x.waits = 0
		bad := none
		for _, d := range c.g.deps.of(t) {
			y := &c.tasks[d]
			y.users++
			switch y.state {
			case Memory:
				continue
			case Erred:
				bad = d
			case Released:
				c.stack = append(c.stack, d)
			}
			x.waits++
		}
		if bad != none {
			c.fail(t, bad)
		} else if x.waits == 0 {
			c.freshen(t)
		}
	}
}

func (c *Core) pop() int32 {
	t := c.stack[len(c.stack)-1]
	c.stack = c.stack[:len(c.stack)-1]
	return t
}

func (c *Core) freshen(t int32) {
	if x := &c.tasks[t]; x.flags&isFresh == 0 {
		x.flags |= isFresh
		c.fresh = append(c.fresh, t)
	}
}

// placeFresh places what has become ready in this step, in order.
func (c *Core) placeFresh() {
	if !c.started || len(c.fresh) == 0 {
		return
	}
	if len(c.fresh) > 1 {
		slices.SortFunc(c.fresh, func(a, b int32) int { return cmp.Compare(c.g.rank[a], c.g.rank[b]) })
	}
	for i := 0; i < len(c.fresh); i++ {
		t := c.fresh[i]
		x := &c.tasks[t]
		x.flags &^= isFresh
		if x.state == Waiting && x.waits == 0 {
			c.place(t)
		}
	}
	c.fresh = c.fresh[:0]
}

// onDone takes a result. What it needed is freed the moment nobody else needs it, and what only
// waited for it is placed.
func (c *Core) onDone(ev Done) {
	w := c.worker(ev.Worker)
	if w == nil {
		return // what it held has gone with it
	}
	x := &c.tasks[ev.Task]
	if x.state != Processing || x.worker != w.index { // an older attempt on the same worker is as good
		if c.copyAt(ev.Task, w.index) == none {
			c.emit(Free{Task: ev.Task, Workers: []WorkerID{w.id}})
		}
		return
	}
	c.counters.Done++
	c.ended = w
	c.leave(ev.Task)
	c.to(ev.Task, onFinish)
	x.bytes = max(ev.Bytes, 0)
	c.learn(ev.Task, x.bytes, ev.Duration)
	c.addCopy(ev.Task, w, none)
	for _, u := range c.g.up.of(ev.Task) {
		if y := &c.tasks[u]; y.state == Waiting {
			if y.waits--; y.waits == 0 {
				c.freshen(u)
			}
		}
	}
	c.unuse(ev.Task)
	if x.flags&isWanted != 0 {
		c.left--
		c.emit(Result{Task: ev.Task, Worker: w.id, Bytes: x.bytes})
	}
	if x.users == 0 {
		c.drop(ev.Task) // it does nothing where the result is wanted
	}
}

// attempt gives the task that is processed under an attempt's number.
func (c *Core) attempt(t, n int32) *task {
	if x := &c.tasks[t]; x.state == Processing && x.attempt == n {
		return x
	}
	return nil
}
