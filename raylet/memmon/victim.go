package memmon

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/dustin/go-humanize"

	"mobula/internal/errs"
	"mobula/internal/ids"
)

// group is the tasks of one function that one caller started: in the largest group one task is missed least.
type group struct {
	owner ids.TaskID
	fn    string
}

// candidate is a worker that could be ended.
type candidate struct {
	w         WorkerSample
	idle      bool
	retriable bool // everything that it runs is retriable
	peers     int  // tasks in the largest group that it runs a task of
	newest    Task // of what it runs
}

// decide picks one worker and ends it. Tasks may be nil: stuck owners must not keep the node from being saved.
func (c *Core) decide(now int64, tasks []Task) {
	if c.level < Terminate {
		return
	}
	var cs []candidate
	peers := make(map[group]int)
	for _, t := range tasks {
		peers[group{t.Owner, t.Func}]++
	}
	for _, w := range c.last.Workers {
		if w.Driver || w.Bytes == 0 {
			continue
		}
		cd := candidate{w: w, retriable: true, idle: w.Leases == 0}
		for _, t := range tasks {
			if t.Worker != w.Worker {
				continue
			}
			cd.idle = false
			cd.retriable = cd.retriable && t.Retriable
			cd.peers = max(cd.peers, peers[group{t.Owner, t.Func}])
			if cd.newest.Started == 0 || t.Started > cd.newest.Started {
				cd.newest = t
			}
		}
		cs = append(cs, cd)
	}
	if len(cs) == 0 {
		if !c.reported {
			c.reported = true
			c.emit(Report{Err: errs.New(errs.CodeOutOfMemory, "%s; no worker process can be ended%s", c.shortage(), c.table())})
		}
		return
	}
	best := slices.MaxFunc(cs, better)
	c.kill(now, best.w, cmp.Or(best.newest.Func, best.w.Own), best.reason())
}

// better orders candidates, the cheapest to lose last.
func better(a, b candidate) int {
	yes := func(x bool) int {
		if x {
			return 1
		}
		return 0
	}
	return cmp.Or(
		cmp.Compare(yes(a.idle), yes(b.idle)),
		cmp.Compare(yes(a.retriable), yes(b.retriable)),
		cmp.Compare(a.peers, b.peers),
		cmp.Compare(a.newest.Started, b.newest.Started),
		cmp.Compare(a.w.Bytes, b.w.Bytes),
		cmp.Compare(a.w.Worker, b.w.Worker),
	)
}

func (cd candidate) reason() string {
	switch {
	case cd.idle:
		return "it was idle"
	case cd.newest.Func == "":
		return "what it ran is not known, its owner did not answer"
	case !cd.retriable:
		return fmt.Sprintf("nothing retriable was left; it ran %s, the newest", cd.newest.Func)
	}
	return fmt.Sprintf("it ran %s, retriable, the newest of %d", cd.newest.Func, cd.peers)
}

func (c *Core) kill(now int64, w WorkerSample, fn, why string) {
	c.killing, c.killedAt = w.Worker, now
	c.asked = false
	c.kills++
	if fn != "" {
		c.peaks[fn] = max(c.peaks[fn], w.Bytes)
	}
	c.emit(Kill{Worker: w.Worker, Func: fn, Peak: w.Bytes, Err: errs.New(errs.CodeOutOfMemory,
		"%s, using %s, was ended by the memory monitor: %s; %s%s", w.Name, size(w.Bytes), why, c.shortage(), c.table())})
}

// shortage describes the node's memory.
func (c *Core) shortage() string {
	s := c.last
	if s.Limit == 0 {
		return "the limit of memory is not known"
	}
	return fmt.Sprintf("%s of the %s's %s are used (%.1f %%, the threshold is %.1f %%)",
		size(s.Used), cmp.Or(s.Source, "node"), size(s.Limit), 100*float64(s.Used)/float64(s.Limit), 100*c.cfg.Terminate)
}

// table lists the workers that use most.
func (c *Core) table() string {
	ws := slices.Clone(c.last.Workers)
	slices.SortStableFunc(ws, func(a, b WorkerSample) int { return cmp.Compare(b.Bytes, a.Bytes) })
	var b strings.Builder
	for i, w := range ws[:min(len(ws), c.cfg.Top)] {
		if i == 0 {
			b.WriteString("; most is used by")
		} else {
			b.WriteString(",")
		}
		fmt.Fprintf(&b, " %s: %s", w.Name, size(w.Bytes))
	}
	return b.String()
}

func size(n uint64) string { return humanize.IBytes(n) }
