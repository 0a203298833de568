package node

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"slices"
	"time"

	"mobula/actors"
	"mobula/internal/memstat"
	"mobula/internal/node/inspect"
	"mobula/objectstore"
	"mobula/raylet/memmon"
	"mobula/raylet/owner"
	"mobula/raylet/pool"
	"mobula/raylet/sched"
)

// start adds the memory monitor to the tree, and the goroutine that samples for it.
func (m *monitor) start() error {
	var err error
	m.ref, err = actors.Spawn(m.raylet.sup, actors.Spec[memmon.Event, memmon.Effect]{
		Kind: "memmon", Name: "memmon",
		New: func(actors.Start) (actors.Core[memmon.Event, memmon.Effect], []memmon.Event, error) {
			core, err := memmon.New(memmon.Config{Terminate: m.cfg.MemoryThreshold, MinFree: m.cfg.MemoryMinFree, Spill: m.spillLevel(), Pause: min(0.80, m.cfg.MemoryThreshold), Total: m.cfg.MemoryLimit})
			return core, nil, err
		},
		Do:     m.do,
		Policy: actors.Policy{MaxRestarts: 20, Window: 10 * time.Second},
	})
	if err != nil {
		return err
	}
	m.work.Go(m.sample)
	return nil
}

// sample posts the node's memory, until the node stops.
func (m *monitor) sample() {
	s := &memstat.Sampler{FS: os.DirFS("/")}
	tick := time.NewTimer(memmon.Interval)
	defer tick.Stop()
	var heaps <-chan time.Time
	if m.cfg.MemoryLimit > 0 {
		t := time.NewTicker(memmon.HeapsInterval)
		defer t.Stop()
		heaps = t.C
	}
	for {
		select {
		case <-tick.C:
		case <-m.now:
			tick.Stop()
		case <-heaps:
			sum := m.heaps(s)
			m.heaped.Store(int64(sum))
			_ = m.ref.Post(memmon.Heaps{Bytes: sum}) // stopped: the node ends
			continue
		case <-m.life.Done():
			return
		}
		used, limit, source, err := s.Node()
		if err != nil {
			m.limited.warn("the node's memory cannot be read; no work will be ended for memory", "err", err)
			tick.Reset(memmon.Slowest)
			continue
		}
		ev := memmon.Sample{Used: used, Limit: limit, Source: source}
		asked := false
		for _, p := range m.raylet.procs.Live() {
			asked = asked || p.Memory > 0
			bytes, err := s.Process(int(p.PID))
			if err != nil || p.Client == 0 {
				continue // it has just ended, or is just starting
			}
			w := memmon.WorkerSample{Worker: p.Client, Name: workerName(p), Job: p.Job, Asked: uint64(p.Memory), Bytes: bytes}
			if p.Slot == sched.SlotOwn {
				w.Own = p.Func
			}
			ev.Workers = append(ev.Workers, w)
		}
		_ = m.ref.Post(ev) // stopped: the node ends
		tick.Reset(memmon.Pace(s.Room(m.spillLevel()), runtime.NumCPU(), asked))
	}
}

// spillLevel is the fraction of memory from which its use has consequences.
func (m *monitor) spillLevel() float64 { return min(0.70, m.cfg.MemoryThreshold) }

// started looks at a worker that has asked for memory: while there are such memory is sampled at short intervals.
func (m *monitor) started(e pool.StartProcess) {
	if e.Memory == 0 {
		return
	}
	select {
	case m.now <- struct{}{}:
	default:
	}
}

// heaps is what all processes take besides the store: the node itself, its clients, and what workers are forked from.
func (m *monitor) heaps(s *memstat.Sampler) (sum uint64) {
	pids := append(m.raylet.procs.Templates(), os.Getpid())
	for _, c := range m.sessions.all() {
		pids = append(pids, int(c.pid))
	}
	slices.Sort(pids)
	for _, pid := range slices.Compact(pids) {
		if bytes, err := s.Process(pid); err == nil { // else it has just ended
			sum += bytes
		}
	}
	return sum
}

func workerName(p pool.Live) string {
	return fmt.Sprintf("worker %v (%v of job %v, process %d)", p.Worker, p.Slot, p.Job, p.PID)
}

func (m *monitor) do(self *actors.Ref[memmon.Event], e memmon.Effect) {
	switch e := e.(type) {
	case memmon.AskTasks:
		m.work.Go(func() { self.Deliver(memmon.Tasks{Epoch: e.Epoch, Tasks: m.running()}) })
	case memmon.Kill:
		m.cfg.Logger.Warn("a worker is ended for memory", "worker", e.Worker, "function", e.Func, "bytes", e.Peak, "err", e.Err)
		m.raylet.ref.Deliver(sched.KillWorker{Worker: e.Worker, Err: e.Err, Peak: e.Peak})
	case memmon.SetLevel:
		m.raylet.ref.Deliver(sched.SetPaused{On: e.Level >= memmon.Pause})
	case memmon.StoreRoom:
		m.store.deliver(objectstore.SetMemoryTarget{Bytes: e.Bytes})
	case memmon.Report:
		m.cfg.Logger.Error("memory is short and nothing can be ended", "err", e.Err)
	}
}

// askTimeout bounds what the monitor waits for owners: one that does not answer is left out.
const askTimeout = time.Second

// running asks every owner what its workers run.
func (m *monitor) running() []memmon.Task {
	var out []memmon.Task
	for _, o := range m.owners.all() {
		for _, r := range askOwner(m.life, o, (*owner.Core).Running) {
			out = append(out, memmon.Task{Worker: r.Worker, Task: r.Task, Func: r.Func, Owner: r.Parent, Started: r.Since, Retriable: r.Retriable})
		}
	}
	return out
}

// askOwner reads an owner's core between two of its steps; the zero value where it does not
// answer in time.
func askOwner[T any](life context.Context, o *ownerActor, f func(*owner.Core) T) (v T) {
	answer := make(chan T, 1)
	if o.ref.Post(inspect.Question{Ask: func(c *owner.Core) { answer <- f(c) }}) != nil {
		return v
	}
	t := time.NewTimer(askTimeout)
	defer t.Stop()
	select {
	case v = <-answer:
	case <-t.C:
	case <-o.ref.Done():
	case <-life.Done():
	}
	return v
}
