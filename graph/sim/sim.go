package sim

import (
	"fmt"
	"time"

	"mobula/graph"
)

// Config describes a run.
type Config struct {
	Graph    *graph.Graph
	Core     graph.Config
	Workers  int
	Threads  int   // of each
	Memory   int64 // memory of each, as it tells the core; nothing enforces it
	Size     func(task int32) int64
	Duration func(task int32) time.Duration
	Jitter   float64 // a task takes longer or shorter by up to this share, by Seed
	Seed     uint64

	Bandwidth  float64       // bytes a second of a link, each way
	NetLatency time.Duration // of each copy
	Latency    time.Duration // of a message between the core and a worker

	Faults []Fault
	Fails  func(task int32, try int) error             // whether a try of a task fails; nil: never
	Each   func(c *graph.Core, ev graph.Event) error   // after each step
	Hear   func(at time.Duration, effect graph.Effect) // each effect
	Sample time.Duration                               // how often Timeline is taken; 0: never
}

// Fault is something that happens to a worker at a time.
type Fault struct {
	At     time.Duration
	Worker int // index
	Kind   FaultKind
}

// FaultKind says what happens.
type FaultKind uint8

// The kinds.
const (
	Kill   FaultKind = iota // the worker is gone
	Leave                   // the worker is gone, and no task is charged
	Pause                   // it gets nothing new
	Resume                  // it gets new tasks again
	Join                    // a new worker comes; Worker is ignored
)

// Default link and scheduler, as in a small cluster in a cloud.
const (
	DefaultBandwidth  = 500e6
	DefaultNetLatency = time.Millisecond
	DefaultLatency    = 2 * time.Millisecond
)

// Report is the outcome of a run.
type Report struct {
	Peak       int64 // highest bytes in all stores together
	PeakWorker int64 // highest bytes in one store
	Moved      int64 // bytes that were copied
	Copies     int
	Makespan   time.Duration
	Busy       time.Duration // of all threads
	Steps      int
	Stolen     uint64
	Results    []int32 // wanted and delivered
	Failures   map[int32]graph.Failed
	Timeline   []Sample
}

// Sample is the state at one moment.
type Sample struct {
	At         time.Duration
	Bytes      int64
	Queued     int
	Processing int
}

// Run runs a graph to its end.
func Run(cfg Config) (*Report, error) {
	r, err := newRun(cfg)
	if err != nil {
		return nil, err
	}
	for i := range cfg.Workers {
		r.join(i)
	}
	r.step(graph.Start{})
	for i, f := range cfg.Faults {
		r.at(int64(f.At), event{kind: evFault, task: int32(i)})
	}
	if cfg.Core.StealInterval > 0 {
		r.at(int64(cfg.Core.StealInterval), event{kind: evTick})
	}
	if cfg.Sample > 0 {
		r.at(0, event{kind: evSample})
	}
	for r.err == nil && !r.over() {
		if r.work == 0 && !r.pendingFaults() {
			return nil, fmt.Errorf("sim: stands still at %v: %s", time.Duration(r.now), r.leftovers())
		}
		ev := r.queue.pop()
		r.now = ev.at
		r.handle(ev)
	}
	if r.err == nil {
		r.err = r.leak()
	}
	if r.err != nil {
		return nil, fmt.Errorf("sim: at %v: %w", time.Duration(r.now), r.err)
	}
	r.rep.Makespan = time.Duration(r.finished)
	r.rep.Stolen = r.core.Counters().Stolen
	return &r.rep, nil
}

// run is a run under way.
type run struct {
	cfg      Config
	core     *graph.Core
	now      int64
	seq      int64
	queue    queue
	work     int // events in the queue other than ticks, samples and faults
	faults   int // faults that have not happened yet
	workers  []*vworker
	total    int64
	rep      Report
	finished int64
	done     bool
	err      error
}

func newRun(cfg Config) (*run, error) {
	core, err := graph.NewCore(cfg.Graph, cfg.Core)
	if err != nil {
		return nil, err
	}
	if cfg.Bandwidth == 0 {
		cfg.Bandwidth = DefaultBandwidth
	}
	return &run{cfg: cfg, core: core, faults: len(cfg.Faults), rep: Report{Failures: make(map[int32]graph.Failed)}}, nil
}

// over tells whether everything wanted is there, and no message on its way could change that.
func (r *run) over() bool { return r.done && r.work == 0 }

func (r *run) pendingFaults() bool { return r.faults > 0 }

func (r *run) at(t int64, ev event) {
	r.seq++
	ev.at, ev.seq = t, r.seq
	if ev.kind.isWork() {
		r.work++
	}
	r.queue.push(ev)
}

func (r *run) join(i int) {
	w := &vworker{r: r, id: graph.WorkerID(i), store: make(map[int32]int64), tasks: make(map[int32]*vtask), waiters: make(map[int32][]int32), coming: make(map[int32]copying)}
	w.free = r.cfg.Threads
	r.workers = append(r.workers, w)
	r.step(graph.WorkerJoined{Worker: w.id, Name: fmt.Sprintf("w%d", i), Threads: r.cfg.Threads, Memory: r.cfg.Memory})
}

// step steps the core and sends its effects on their way.
func (r *run) step(ev graph.Event) {
	r.rep.Steps++
	for _, e := range r.core.Step(r.now, ev) {
		if r.cfg.Hear != nil {
			r.cfg.Hear(time.Duration(r.now), e)
		}
		r.effect(e)
	}
	if r.cfg.Each != nil && r.err == nil {
		r.err = r.cfg.Each(r.core, ev)
	}
}

func (r *run) effect(e graph.Effect) {
	to := func(w graph.WorkerID, ev event) {
		ev.worker = int32(w)
		r.at(r.now+int64(r.cfg.Latency), ev)
	}
	switch e := e.(type) {
	case graph.Run:
		r.done = false
		to(e.Worker, event{kind: evRun, task: e.Task, n: e.Attempt, rank: e.Rank})
	case graph.Fetch:
		r.rep.Moved += e.Bytes
		r.rep.Copies++
		to(e.To, event{kind: evFetch, task: e.Task, n: int32(e.From)})
	case graph.Stop:
		to(e.Worker, event{kind: evStop, task: e.Task, n: e.Attempt})
	case graph.Recall:
		to(e.Worker, event{kind: evRecall, task: e.Task, n: e.Attempt})
	case graph.Free:
		for _, w := range e.Workers {
			to(w, event{kind: evFree, task: e.Task})
		}
	case graph.Result:
		r.rep.Results = append(r.rep.Results, e.Task)
	case graph.Failed:
		r.rep.Failures[e.Task] = e
	case graph.Finished:
		r.done = true
		r.finished = r.now
	}
}

func (r *run) handle(ev event) {
	if ev.kind.isWork() {
		r.work--
	}
	switch ev.kind {
	case evTick:
		r.step(graph.Tick{})
		r.at(r.now+int64(r.cfg.Core.StealInterval), ev)
	case evSample:
		s := Sample{At: time.Duration(r.now), Bytes: r.total}
		s.Queued, s.Processing = r.core.Count(graph.Queued), r.core.Count(graph.Processing)
		r.rep.Timeline = append(r.rep.Timeline, s)
		r.at(r.now+int64(r.cfg.Sample), ev)
	case evFault:
		r.faults--
		r.fault(r.cfg.Faults[ev.task])
	case evCore:
		if !r.workers[ev.worker].dead {
			r.step(ev.msg)
		}
	default:
		if w := r.workers[ev.worker]; !w.dead {
			w.handle(ev)
		}
	}
}

func (r *run) fault(f Fault) {
	if f.Kind == Join {
		r.join(len(r.workers))
		return
	}
	w := r.workers[f.Worker]
	if w.dead {
		return
	}
	switch f.Kind {
	case Pause:
		r.step(graph.Pause{Worker: w.id})
	case Resume:
		r.step(graph.Resume{Worker: w.id})
	default:
		running := w.die()
		r.step(graph.WorkerLeft{Worker: w.id, Killed: f.Kind == Kill, Running: running})
	}
}

// leak names a result that is kept after the end although it is not wanted.
func (r *run) leak() error {
	wanted := make(map[int32]bool)
	for _, t := range r.cfg.Graph.Wanted() {
		wanted[t] = true
	}
	for _, w := range r.workers {
		for t := range w.store {
			if !w.dead && !wanted[t] {
				return fmt.Errorf("worker %d keeps %q, which nobody wants", w.id, r.cfg.Graph.Key(t))
			}
		}
	}
	return nil
}

func (r *run) leftovers() string {
	queued, processing := r.core.Count(graph.Queued), r.core.Count(graph.Processing)
	return fmt.Sprintf("%d queued, %d processing, %d bytes in stores", queued, processing, r.total)
}
