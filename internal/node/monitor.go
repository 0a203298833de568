package node

import (
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

// startMonitor adds the memory monitor to the tree, and the goroutine that samples for it.
func (n *Node) startMonitor() error {
	var err error
	n.monitor, err = actors.Spawn(n.rayletSup, actors.Spec[memmon.Event, memmon.Effect]{
		Kind: "memmon", Name: "memmon",
		New: func(actors.Start) (actors.Core[memmon.Event, memmon.Effect], []memmon.Event, error) {
			core, err := memmon.New(memmon.Config{Terminate: n.cfg.MemoryThreshold, MinFree: n.cfg.MemoryMinFree, Spill: n.spillLevel(), Pause: min(0.80, n.cfg.MemoryThreshold), Total: n.cfg.MemoryLimit})
			return core, nil, err
		},
		Do:     n.doMonitor,
		Policy: actors.Policy{MaxRestarts: 20, Window: 10 * time.Second},
	})
	if err != nil {
		return err
	}
	n.work.Go(n.sample)
	return nil
}

// sample posts the node's memory, until the node stops.
func (n *Node) sample() {
	s := &memstat.Sampler{FS: os.DirFS("/")}
	tick := time.NewTimer(memmon.Interval)
	defer tick.Stop()
	var heaps <-chan time.Time
	if n.cfg.MemoryLimit > 0 {
		t := time.NewTicker(memmon.HeapsInterval)
		defer t.Stop()
		heaps = t.C
	}
	for {
		select {
		case <-tick.C:
		case <-n.sampleNow:
			tick.Stop()
		case <-heaps:
			sum := n.heaps(s)
			n.heaped.Store(int64(sum))
			_ = n.monitor.Post(memmon.Heaps{Bytes: sum}) // stopped: the node ends
			continue
		case <-n.life.Done():
			return
		}
		used, limit, source, err := s.Node()
		if err != nil {
			n.limited.warn("the node's memory cannot be read; no work will be ended for memory", "err", err)
			tick.Reset(memmon.Slowest)
			continue
		}
		ev := memmon.Sample{Used: used, Limit: limit, Source: source}
		asked := false
		for _, p := range n.procs.Live() {
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
		_ = n.monitor.Post(ev) // stopped: the node ends
		tick.Reset(memmon.Pace(s.Room(n.spillLevel()), runtime.NumCPU(), asked))
	}
}

// spillLevel is the fraction of memory from which its use has consequences.
func (n *Node) spillLevel() float64 { return min(0.70, n.cfg.MemoryThreshold) }

// startProcess starts a worker. One that asked for memory has it looked at: while there are such it is sampled at short intervals.
func (n *Node) startProcess(e pool.StartProcess) {
	n.procs.Start(e)
	if e.Memory == 0 {
		return
	}
	select {
	case n.sampleNow <- struct{}{}:
	default:
	}
}

// heaps is what all processes take besides the store: the node itself, its clients, and what workers are forked from.
func (n *Node) heaps(s *memstat.Sampler) (sum uint64) {
	pids := append(n.procs.Templates(), os.Getpid())
	for _, c := range n.clients.all() {
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

func (n *Node) doMonitor(self *actors.Ref[memmon.Event], e memmon.Effect) {
	switch e := e.(type) {
	case memmon.AskTasks:
		n.work.Go(func() { self.Deliver(memmon.Tasks{Epoch: e.Epoch, Tasks: n.running()}) })
	case memmon.Kill:
		n.cfg.Logger.Warn("a worker is ended for memory", "worker", e.Worker, "function", e.Func, "bytes", e.Peak, "err", e.Err)
		n.toSched(sched.KillWorker{Worker: e.Worker, Err: e.Err, Peak: e.Peak})
	case memmon.SetLevel:
		n.toSched(sched.SetPaused{On: e.Level >= memmon.Pause})
	case memmon.StoreRoom:
		n.toStore(objectstore.SetMemoryTarget{Bytes: e.Bytes})
	case memmon.Report:
		n.cfg.Logger.Error("memory is short and nothing can be ended", "err", e.Err)
	}
}

// askTimeout bounds what the monitor waits for owners: one that does not answer is left out.
const askTimeout = time.Second

// running asks every owner what its workers run.
func (n *Node) running() []memmon.Task {
	var out []memmon.Task
	for _, o := range n.owners.all() {
		for _, r := range askOwner(n, o, (*owner.Core).Running) {
			out = append(out, memmon.Task{Worker: r.Worker, Task: r.Task, Func: r.Func, Owner: r.Parent, Started: r.Since, Retriable: r.Retriable})
		}
	}
	return out
}

// askOwner reads an owner's core between two of its steps; the zero value where it does not
// answer in time.
func askOwner[T any](n *Node, o *ownerActor, f func(*owner.Core) T) (v T) {
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
	case <-n.life.Done():
	}
	return v
}
