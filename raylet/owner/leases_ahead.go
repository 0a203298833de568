package owner

import (
	"strings"

	"mobula/wire"
)

// How many tasks are pushed ahead over a lease. What waits behind a long task may have to wait to its end: it can be given back only by a worker whose threads
// run, which they do not while a task of Python's holds the GIL. So a task goes behind another only as far as both are known to be short. A class says nothing
// of that alone: all tasks of a job's graphs are of one, and all calls of its executors. A task is known by others with its label, which of a graph's is the
// prefix of its key; of a label that was not seen yet, one task a lease is pushed.

const (
	maxLabels = 1024 // labels of a class whose run times are remembered; above it, they are learned again
	labelMost = 256  // bytes of a label that tell it from others
	tooLong   = 10   // times the pipeline's: a task that has run for so long is long, whatever those before it were
)

// runTime is the mean run time of some tasks, in nanoseconds; meaningful where known.
type runTime struct {
	runNs int64
	known bool
}

// measured takes one run time into the mean. A long one counts at once, and is forgotten slowly: to push too much is worse than to push too little.
func (r *runTime) measured(ns int64) {
	if !r.known {
		r.known, r.runNs = true, ns
		return
	}
	r.runNs += (ns - r.runNs) / 8
}

// labelTimes has the run times of a class's tasks by their labels.
type labelTimes struct {
	seen map[string]*runTime
	last *wire.TaskOptions // looked up last, and found
	hit  *runTime
	news int // of the last hundred runs, how many were the first of their label, in 1024ths
}

const mostlyNew = 512 // of labelTimes.news: where most labels are new, they tell nothing of the tasks to come

// of gives the run time of tasks with such options; nil: none has run yet, or they have no label.
func (lt *labelTimes) of(opts *wire.TaskOptions) *runTime {
	if lt.last != opts {
		r := lt.seen[shortLabel(opts)]
		if r == nil {
			return nil
		}
		lt.last, lt.hit = opts, r
	}
	return lt.hit
}

func shortLabel(opts *wire.TaskOptions) string { return opts.Label[:min(len(opts.Label), labelMost)] }

func (lt *labelTimes) measured(opts *wire.TaskOptions, ns int64) {
	if opts.Label == "" {
		return
	}
	r, fresh := lt.of(opts), 0
	if r == nil {
		if lt.seen == nil || len(lt.seen) >= maxLabels {
			lt.seen, lt.last, lt.hit = make(map[string]*runTime), nil, nil
		}
		r, fresh = new(runTime), 1024
		lt.seen[strings.Clone(shortLabel(opts))] = r
	}
	lt.news += (fresh - lt.news) / 64
	r.measured(ns)
}

// measured notes how long a task ran.
func (ls *leases) measured(t *taskRec, ns int64) {
	k := t.class
	if t.spec != nil {
		k.labels.measured(t.spec.Opts, ns)
	}
	fresh := !k.known
	k.runTime.measured(ns)
	if fresh {
		for _, l := range k.leases {
			ls.relist(l) // its pipeline is deeper now
		}
	}
}

// depth is how many tasks of a class are pushed ahead over one lease, at most.
func (k *classRec) depth(cfg *Config) int {
	if !k.known || k.isolated || k.kind == wire.TaskActorCreate {
		return 1
	}
	return k.runTime.depth(cfg)
}

func (r *runTime) depth(cfg *Config) int {
	if r.runNs <= 0 {
		return cfg.MaxPipeline
	}
	return int(min(max(int64(cfg.PipelineTime)/r.runNs, 1), int64(cfg.MaxPipeline)))
}

// depthWith is how many tasks may be on a lease with a task, as far as others with its label tell.
func (k *classRec) depthWith(t *taskRec, cfg *Config) int {
	if t.spec == nil || t.spec.Opts.Label == "" {
		return cfg.MaxPipeline // the class tells
	}
	if r := k.labels.of(t.spec.Opts); r != nil {
		return r.depth(cfg)
	}
	if k.labels.news > mostlyNew {
		return cfg.MaxPipeline
	}
	return 1
}

// fitsBehind tells whether a task may be pushed behind what a lease of its class has.
func (l *leaseRec) fitsBehind(t *taskRec, cfg *Config) bool {
	load := l.load()
	if load == 0 {
		return true
	}
	h := l.lane.head()
	if h == nil {
		h = l.fetching[0]
	}
	return load < l.class.depthWith(t, cfg) && load < l.class.depthWith(h, cfg)
}

// slowed tells whether the task that runs on a lease has run for long. If so, the lease gets no more until that has ended.
func (ls *leases) slowed(l *leaseRec) bool {
	if l.lane.Len() > 0 && ls.now-l.headSince >= tooLong*int64(ls.cfg.PipelineTime) {
		l.slow = true
		ls.relist(l)
	}
	return l.slow
}
