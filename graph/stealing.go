package graph

import (
	"cmp"
	"slices"
	"time"
)

const (
	maxStealTries = 16                            // how many more tasks of a victim are looked at than there are idle threads
	stealsATick   = 50                            // how often work is stolen at most between two ticks, when threads become idle
	stealLatency  = int64(100 * time.Millisecond) // what a theft costs besides moves, as in Dask
)

// stealing moves tasks from loaded workers to idle ones that can end them sooner.
type stealing struct {
	*step
	tasks     *tasks
	measures  *measures
	workers   *workers
	copies    *copies
	placement *placement
	stole     int64   // when work was stolen last
	ended     *worker // worker on which a task ended in this step
}

// stealIfIdle steals for a worker that has become idle.
func (sg *stealing) stealIfIdle(w *worker) {
	if len(w.procs)-w.long < w.threads && sg.now-sg.stole >= int64(sg.cfg.StealInterval)/stealsATick {
		sg.steal()
	}
}

// steal asks loaded workers for tasks that idle ones can end sooner. A worker gives back only
// what it has not begun; once Recalled confirms that, the task goes to the worker it was meant for.
func (sg *stealing) steal() {
	if sg.cfg.StealInterval < 0 || !sg.started {
		return
	}
	sg.stole = sg.now
	var idle, full []*worker
	for _, w := range sg.workers.live {
		switch n := len(w.procs) - w.long; {
		case n < w.threads && !w.paused:
			idle = append(idle, w)
		case n > w.threads || w.paused && n > 0:
			full = append(full, w)
		}
	}
	if len(idle) == 0 || len(full) == 0 {
		return
	}
	slices.SortStableFunc(full, func(a, b *worker) int {
		return cmp.Compare(b.work*int64(a.threads), a.work*int64(b.threads))
	})
	slices.SortStableFunc(idle, func(a, b *worker) int { return cmp.Compare(len(a.procs)*b.threads, len(b.procs)*a.threads) })
	free := make([]int, len(idle))
	for i, w := range idle {
		free[i] = w.threads - (len(w.procs) - w.long)
	}
	for _, v := range full {
		if sg.stealFrom(v, idle, free) {
			return
		}
	}
}

// stealFrom takes a victim's last tasks in order, one for each idle thread. It tells whether no idle thread is
// left.
func (sg *stealing) stealFrom(v *worker, idle []*worker, free []int) bool {
	spare := len(v.procs) - v.long - v.threads
	if v.paused {
		spare = len(v.procs) - v.long
	}
	total := 0
	for _, n := range free {
		total += n
	}
	if total == 0 {
		return true
	}
	picks := sg.stealable(v, min(spare, total)*2+maxStealTries)
	work := v.work
	for _, t := range picks {
		if spare <= 0 {
			break
		}
		x := &sg.tasks.list[t]
		// A running task is half done, on average.
		wait := (work-x.est)/int64(v.threads) - v.work/int64(2*len(v.procs))
		i := sg.thief(t, v, idle, free, wait)
		if i < 0 {
			continue
		}
		x.flags |= isRecalled
		free[i]--
		spare--
		work -= x.est
		sg.emit(Recall{Task: t, Attempt: x.attempt, Worker: v.id})
	}
	return false
}

// stealable gives up to n tasks of a worker that may move to another, the last in order first.
func (sg *stealing) stealable(v *worker, n int) []int32 {
	var out []int32
	for _, t := range v.procs {
		if x := &sg.tasks.list[t]; x.flags&(isLong|isRecalled) == 0 {
			out = append(out, t)
		}
	}
	slices.SortFunc(out, func(a, b int32) int { return cmp.Compare(sg.g.rank[b], sg.g.rank[a]) })
	return out[:min(n, len(out))]
}

// thief picks the idle worker to which t costs the least to move. The move pays if t would wait longer than twice
// the time to move its inputs there and its result back.
func (sg *stealing) thief(t int32, v *worker, idle []*worker, free []int, wait int64) int {
	best, low := -1, int64(0)
	restricted := sg.g.tasks[t].Ann.restricts()
	for i, w := range idle {
		if free[i] <= 0 || restricted && !slices.Contains(sg.workers.valid(t), w) {
			continue
		}
		cost := stealLatency + int64(2*(float64(sg.copies.missing(t, w))+sg.measures.size(t))/sg.cfg.Bandwidth*1e9)
		if best < 0 || cost < low {
			best, low = i, cost
		}
	}
	if best < 0 || !v.paused && low >= wait {
		return -1
	}
	return best
}

func (sg *stealing) onRecalled(ev Recalled) {
	x := sg.tasks.attempt(ev.Task, ev.Attempt)
	w := sg.workers.worker(ev.Worker)
	if x == nil || w == nil || x.worker != w.index {
		return
	}
	x.flags &^= isRecalled
	if !ev.OK {
		return
	}
	to := sg.idlest(ev.Task, w)
	if to == nil {
		to = w // it goes back to its worker as a new attempt
	} else {
		sg.counters.Stolen++
	}
	sg.workers.leave(ev.Task)
	sg.tasks.to(ev.Task, onRecheck)
	x.waits = 0
	sg.placement.assign(ev.Task, to)
}

// idlest is the worker with an idle thread to which t costs the least to move.
func (sg *stealing) idlest(t int32, not *worker) *worker {
	var idle []*worker
	ws := sg.workers.live
	if sg.g.tasks[t].Ann.restricts() {
		ws = sg.workers.valid(t)
	}
	for _, w := range ws {
		if w != not && !w.paused && len(w.procs)-w.long < w.threads {
			idle = append(idle, w)
		}
	}
	if len(idle) == 0 {
		return nil
	}
	return sg.placement.best(t, idle)
}
