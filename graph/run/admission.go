package run

import "time"

const (
	// priorGrowth is how much a process is taken to grow by while it runs a task, for each byte of the task's arguments, as long as nothing is
	// known of tasks of its kind: pandas sorts in three times the size of what it is given.
	priorGrowth = 3.0
	// spare is which part of the limit is left free, the same as the store's room leaves.
	spare = 16
	// small is which part of the limit a task may take without being counted.
	small = 64
	// patience is how long tasks wait for memory while none ends: one that runs might wait for one that is held back.
	patience = time.Minute
)

// admission keeps tasks that take much memory from running at once where the node has a memory limit. A task takes its arguments, which are in
// the store's memory as long as it runs, and what its process grows by meanwhile: that is learned by kind, from what all processes took
// while tasks of no other kind took much. One task always fits.
type admission struct {
	limit  int64
	heaps  int64 // of the node's processes, lately
	idle   int64 // the same when no task ran that took much
	flying map[int32]share
	sum    share
	growth map[string]float64 // by kind, bytes a byte of arguments
	spell  spell
}

// share is what a task of a kind takes, in bytes.
type share struct {
	kind        string
	args, grows int64
}

func (s share) bytes() int64 { return s.args + s.grows }

// spell is a time in which some task takes much.
type spell struct {
	kind string // of all of them; mixed: of several
	args int64  // the most that they took at once
	peak int64  // of the heaps; 0: not seen yet
}

const mixed = "\x00"

func newAdmission(limit int64) *admission {
	return &admission{limit: limit, flying: make(map[int32]share), growth: make(map[string]float64)}
}

// share is what a task of a kind with so many bytes of arguments takes.
func (a *admission) share(kind string, args int64) share {
	f, ok := a.growth[kind]
	if !ok {
		f = priorGrowth
	}
	return share{kind, args, int64(f * float64(args))}
}

// fits tells whether a task may run beside those that do.
func (a *admission) fits(s share) bool {
	if len(a.flying) == 0 || s.bytes() <= a.limit/small {
		return true
	}
	return max(a.heaps, a.idle+a.sum.grows)+a.sum.args+s.bytes() <= a.limit-a.limit/spare
}

// fly notes a task that is with the owner.
func (a *admission) fly(t int32, s share) {
	if s.bytes() <= a.limit/small {
		return
	}
	if len(a.flying) == 0 {
		a.spell = spell{kind: s.kind}
	} else if a.spell.kind != s.kind {
		a.spell.kind = mixed
	}
	a.flying[t] = s
	a.sum.args += s.args
	a.sum.grows += s.grows
	a.spell.args = max(a.spell.args, a.sum.args)
}

// land notes that a task is not with the owner any more.
func (a *admission) land(t int32) {
	s, ok := a.flying[t]
	if !ok {
		return
	}
	delete(a.flying, t)
	a.sum.args -= s.args
	a.sum.grows -= s.grows
	if sp := a.spell; sp.kind != mixed && sp.peak > 0 { // and an eighth more: the peak may lie between two looks
		f := float64(max(sp.peak-a.idle, 0)) * 9 / 8 / float64(sp.args)
		a.growth[sp.kind] = max(a.growth[sp.kind], f)
	}
}

// look takes what the node's processes take together.
func (a *admission) look(heaps int64) {
	a.heaps = heaps
	if len(a.flying) == 0 {
		a.idle = heaps
		return
	}
	a.spell.peak = max(a.spell.peak, heaps)
}
