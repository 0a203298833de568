package graph

import "slices"

// running gives the workers that are not paused.
func (ws *workers) running() []*worker {
	out := make([]*worker, 0, len(ws.live))
	for _, w := range ws.live {
		if !w.paused {
			out = append(out, w)
		}
	}
	return out
}

// leastBusy picks a worker for a task without inputs: the one with the least work, in turn if several have none.
func (ws *workers) leastBusy() *worker {
	var best *worker
	ws.turn++
	for i := range ws.live {
		w := ws.live[(i+ws.turn)%len(ws.live)]
		if !w.paused && (best == nil || w.work < best.work) {
			best = w
		}
	}
	return best
}

// leastFull is the open worker with the fewest tasks per thread among those that admits accepts, or nil. Workers that it does not
// accept are closed.
func (ws *workers) leastFull(admits func(*worker) bool) *worker {
	var best *worker
	keep := ws.open[:0]
	for _, w := range ws.open {
		if ws.slots(w) <= 0 || admits != nil && !admits(w) {
			w.isOpen = false
			continue
		}
		keep = append(keep, w)
		if best == nil || len(w.procs)*best.threads < len(best.procs)*w.threads {
			best = w
		}
	}
	clear(ws.open[len(keep):])
	ws.open = keep
	return best
}

// valid gives the running workers that a task with restrictions may go to.
func (ws *workers) valid(t int32) []*worker {
	a := ws.g.tasks[t].Ann
	var named, others []*worker
	for _, w := range ws.live {
		if !w.has(a.Resources) {
			continue
		}
		if len(a.Workers) == 0 || slices.Contains(a.Workers, w.name) {
			named = append(named, w)
		} else {
			others = append(others, w)
		}
	}
	if len(named) == 0 && a.AllowOthers {
		named = others
	}
	return slices.DeleteFunc(named, func(w *worker) bool { return w.paused })
}

func (w *worker) has(res map[string]int64) bool {
	for name, n := range res {
		if w.res[name] < n {
			return false
		}
	}
	return true
}
