package run

import "time"

const (
	// priorGrowth is the expected growth of a process while it runs a task, per byte of the task's arguments, until tasks of its kind were
	// seen: pandas needs three times the size of its input to sort it.
	priorGrowth = 3.0
	// limit/spare is left free, as much as the store's room leaves.
	spare = 16
	// limit/small is what a task may take without being counted.
	small = 64
	// patience is how long tasks wait for memory while none ends: a running task might wait for one that is held
	// back.
	patience = time.Minute
)

// admission keeps tasks that take much memory from running at the same time, on a node with a memory limit. A task takes its arguments, which
// are in the store's memory while it runs, and what its process grows by. That growth is learned by kind of task, from the heaps of all
// processes while tasks of no other kind took much. One task always fits.
type admission struct {
	limit    int64
	heaps    int64 // of the node's processes, at the last look
	idle     int64 // the same while no task ran that took much
	flying   map[int32]share
	sum      share
	growth   map[string]float64 // by kind, bytes per byte of arguments
	interval interval
}

// share is what a task of a kind takes, in bytes.
type share struct {
	kind        string
	args, grows int64
}

func (s share) bytes() int64 { return s.args + s.grows }

// interval is an interval in which some task takes much.
type interval struct {
	kind string // kind of all its tasks; mixed: several kinds
	args int64  // the most that arguments took at once
	peak int64  // highest heaps; 0: not seen yet
}

const mixed = "\x00"

func newAdmission(limit int64) *admission {
	return &admission{limit: limit, flying: make(map[int32]share), growth: make(map[string]float64)}
}

// share is what a task of a kind with that many bytes of arguments takes.
func (a *admission) share(kind string, args int64) share {
	f, ok := a.growth[kind]
	if !ok {
		f = priorGrowth
	}
	return share{kind, args, int64(f * float64(args))}
}

// fits tells whether a task may run beside those that run.
func (a *admission) fits(s share) bool {
	if len(a.flying) == 0 || s.bytes() <= a.limit/small {
		return true
	}
	return max(a.heaps, a.idle+a.sum.grows)+a.sum.args+s.bytes() <= a.limit-a.limit/spare
}

// add notes a task that is with the owner.
func (a *admission) add(t int32, s share) {
	if s.bytes() <= a.limit/small {
		return
	}
	if len(a.flying) == 0 {
		a.interval = interval{kind: s.kind}
	} else if a.interval.kind != s.kind {
		a.interval.kind = mixed
	}
	a.flying[t] = s
	a.sum.args += s.args
	a.sum.grows += s.grows
	a.interval.args = max(a.interval.args, a.sum.args)
}

// remove notes that a task is no longer with the owner.
func (a *admission) remove(t int32) {
	s, ok := a.flying[t]
	if !ok {
		return
	}
	delete(a.flying, t)
	a.sum.args -= s.args
	a.sum.grows -= s.grows
	if sp := a.interval; sp.kind != mixed && sp.peak > 0 { // add an eighth: the peak may lie between two looks
		f := float64(max(sp.peak-a.idle, 0)) * 9 / 8 / float64(sp.args)
		a.growth[sp.kind] = max(a.growth[sp.kind], f)
	}
}

// observe takes the heap bytes of all processes of the node.
func (a *admission) observe(heaps int64) {
	a.heaps = heaps
	if len(a.flying) == 0 {
		a.idle = heaps
		return
	}
	a.interval.peak = max(a.interval.peak, heaps)
}
