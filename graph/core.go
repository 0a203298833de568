package graph

import "fmt"

// Core schedules one graph. It is not safe for concurrent use.
//
// It is composed of parts, listed from the lowest to the highest, each with its own state and methods. A part calls those below it directly. Only
// placement calls one above it, the queue of root tasks, through an interface that it declares.
type Core struct {
	*step
	*tasks
	*measures
	*workers
	*copies
	*placement
	*needs
	*stealing
}

// NewCore makes a core for a graph.
func NewCore(g *Graph, cfg Config) (*Core, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	s := &step{g: g, cfg: cfg}
	c := &Core{step: s}
	c.tasks = newTasks(s)
	c.measures = newMeasures(s, c.tasks)
	c.workers = newWorkers(s, c.tasks)
	c.copies = newCopies(s, c.tasks, c.workers)
	c.placement = &placement{step: s, tasks: c.tasks, measures: c.measures, workers: c.workers, copies: c.copies}
	c.placement.queue = newQueue(c.placement)
	c.needs = newNeeds(s, c.tasks, c.workers, c.copies, c.placement)
	c.stealing = &stealing{step: s, tasks: c.tasks, measures: c.measures, workers: c.workers, copies: c.copies, placement: c.placement}
	return c, nil
}

func newQueue(ps *placement) rootQueue {
	switch ps.cfg.Policy {
	case Withhold:
		return &plainQueue{placement: ps}
	case CoAssign:
		return newBatches(ps)
	default:
		return newFamilies(ps)
	}
}

// Step takes one event and returns its effects. The core owns the slice; it is valid until the next Step.
func (c *Core) Step(now int64, ev Event) []Effect {
	c.now = now
	clear(c.out)
	c.out = c.out[:0]
	switch ev := ev.(type) {
	case Start:
		c.onStart()
	case WorkerJoined:
		c.onJoined(ev)
	case WorkerResized:
		if c.workers.resize(ev) {
			c.placement.unstrand()
		}
	case WorkerLeft:
		c.onLeft(ev)
	case Pause:
		if w := c.workers.worker(ev.Worker); w != nil {
			w.paused = true
		}
	case Resume:
		if w := c.workers.worker(ev.Worker); w != nil {
			w.paused = false
			c.workers.markOpen(w)
			c.placement.unstrand()
		}
	case Holds:
		c.onHolds(ev)
	case Broken:
		if !c.started && c.tasks.list[ev.Task].state == Released {
			c.needs.failFor(ev.Task, ev.Err)
		}
	case Done:
		c.onDone(ev)
	case Failure:
		c.onFailure(ev)
	case Fetched:
		c.copies.onFetched(ev)
	case FetchFailed:
		c.needs.onFetchFailed(ev)
	case LongRunning:
		c.workers.secede(ev.Task, ev.Attempt, true)
	case Rejoined:
		c.workers.secede(ev.Task, ev.Attempt, false)
	case Recalled:
		c.stealing.onRecalled(ev)
	case Want:
		c.onWant(ev)
	case Cancel:
		c.onCancel(ev)
	case Tick:
		c.stealing.steal()
	default:
		panic(fmt.Sprintf("graph: unknown event %T", ev)) // a bug in the program: supervision reports it
	}
	c.placement.placeReady()
	if c.started {
		c.placement.queue.settle()
		if c.stealing.ended != nil {
			c.stealing.stealIfIdle(c.stealing.ended)
			c.stealing.ended = nil
		}
		if c.needs.left == 0 && !c.needs.finishedSent {
			c.needs.finishedSent = true
			c.emit(Finished{})
		}
	}
	return c.out
}

// State gives a task's state.
func (c *Core) State(t int32) State { return c.tasks.list[t].state }

// Err gives the reason why a task failed, or nil.
func (c *Core) Err(t int32) error {
	if c.tasks.list[t].state != Erred {
		return nil
	}
	chain := c.needs.chain(t)
	return c.needs.errs[chain[len(chain)-1]]
}

// Counters gives the counters.
func (c *Core) Counters() Counters { return c.counters }

// Count gives how many tasks are in a state.
func (c *Core) Count(s State) int { return c.tasks.count[s] }

// Bytes gives the bytes that results hold, copies included.
func (c *Core) Bytes() int64 { return c.copies.inMemory }
