package graph

import (
	"math"
	"slices"
)

// worker is what the core knows of a worker.
type worker struct {
	id      WorkerID
	index   int32
	name    string
	threads int
	memory  int64
	res     map[string]int64
	procs   []int32 // tasks it processes
	long    int     // of procs, those that seceded
	work    int64   // how long procs will take, in ns of one thread
	bytes   int64   // bytes of results that it holds or is being sent
	holds   []int32 // tasks whose result it may hold; some are gone
	nholds  int     // how many it has
	sending int     // copies that other workers fetch from it
	paused  bool
	isOpen  bool // in workers.open
	claims  claims
}

// workers is the table of workers: what they have, what they do and which may have a slot.
type workers struct {
	*step
	tasks         *tasks
	byIndex       []*worker // nil once left
	live          []*worker // those that are there, in order of arrival
	index         map[WorkerID]int32
	threads       int   // of all live workers
	memory        int64 // bytes that they may hold
	unknownMemory int   // of live, those whose memory is unknown
	open          []*worker
	seceded       int // of the tasks being processed
	turn          int
}

func newWorkers(s *step, ts *tasks) *workers {
	return &workers{step: s, tasks: ts, index: make(map[WorkerID]int32)}
}

func (ws *workers) worker(id WorkerID) *worker {
	if i, ok := ws.index[id]; ok {
		return ws.byIndex[i]
	}
	return nil
}

// join adds a worker, unless it is there already or has no thread.
func (ws *workers) join(ev WorkerJoined) bool {
	if ws.worker(ev.Worker) != nil || ev.Threads <= 0 {
		return false
	}
	w := &worker{
		id: ev.Worker, index: int32(len(ws.byIndex)), name: ev.Name, threads: ev.Threads, memory: ev.Memory, res: ev.Resources,
	}
	ws.index[w.id] = w.index
	ws.byIndex = append(ws.byIndex, w)
	ws.live = append(ws.live, w)
	ws.tally(w, 1)
	ws.markOpen(w)
	return true
}

// resize changes what a worker has, if it is there and has a thread still.
func (ws *workers) resize(ev WorkerResized) bool {
	w := ws.worker(ev.Worker)
	if w == nil || ev.Threads <= 0 {
		return false
	}
	ws.tally(w, -1)
	w.threads, w.memory = ev.Threads, ev.Memory
	ws.tally(w, 1)
	ws.markOpen(w)
	return true
}

// remove removes a worker that has left. The caller still has to take its tasks off it.
func (ws *workers) remove(w *worker) {
	delete(ws.index, w.id)
	ws.byIndex[w.index] = nil
	ws.live = slices.DeleteFunc(ws.live, func(o *worker) bool { return o == w })
	ws.open = slices.DeleteFunc(ws.open, func(o *worker) bool { return o == w })
	ws.tally(w, -1)
}

// tally adds a worker to the cluster's totals (sign 1), or subtracts it (-1).
func (ws *workers) tally(w *worker, sign int) {
	ws.threads += sign * w.threads
	ws.memory += int64(sign) * w.memory
	if w.memory == 0 {
		ws.unknownMemory += sign
	}
}

// leave takes a task off the worker that processes it.
func (ws *workers) leave(t int32) {
	x := &ws.tasks.list[t]
	w := ws.at(x.worker)
	if w != nil {
		last := w.procs[len(w.procs)-1]
		w.procs[x.at] = last
		ws.tasks.list[last].at = x.at
		w.procs = w.procs[:len(w.procs)-1]
		w.work -= x.est
		if x.flags&isLong != 0 {
			w.long--
		}
		ws.markOpen(w)
	}
	if x.flags&isLong != 0 {
		ws.seceded--
	}
	x.worker = none
	x.flags &^= isLong | isRecalled
}

func (ws *workers) at(i int32) *worker {
	if i == none {
		return nil
	}
	return ws.byIndex[i]
}

// markOpen notes that a worker may have a slot.
func (ws *workers) markOpen(w *worker) {
	if !w.isOpen {
		w.isOpen = true
		ws.open = append(ws.open, w)
	}
}

// markFull removes a worker from those that may have a slot, until one of its tasks ends.
func (ws *workers) markFull(w *worker) {
	w.isOpen = false
	ws.open = slices.DeleteFunc(ws.open, func(o *worker) bool { return o == w })
}

// slots is how many more root tasks a worker may be sent.
func (ws *workers) slots(w *worker) int {
	if w.paused {
		return 0
	}
	if ws.unlimited() {
		return math.MaxInt
	}
	return max(int(math.Ceil(ws.cfg.Saturation*float64(w.threads))), 1) - (len(w.procs) - w.long)
}

func (ws *workers) secede(t, attempt int32, on bool) {
	x := ws.tasks.attempt(t, attempt)
	if x == nil || (x.flags&isLong != 0) == on {
		return
	}
	w := ws.byIndex[x.worker]
	x.flags ^= isLong
	if !on {
		w.long--
		ws.seceded--
		return
	}
	w.long++
	ws.seceded++
	ws.markOpen(w)
}

// busy is how many tasks are being processed and have not seceded.
func (ws *workers) busy() int { return ws.tasks.count[Processing] - ws.seceded }

// backlog is how long the tasks that a worker was sent keep it busy. A running task is half done, on average.
func (w *worker) backlog() int64 {
	if len(w.procs) == 0 {
		return 0
	}
	return w.work/int64(w.threads) - w.work/int64(2*len(w.procs))
}
