package timeline

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"mobula/internal/ids"
	"mobula/telemetry/events"
)

// draw emits everything that collect found.
func (d *drawing) draw() {
	pids := d.names()
	for _, id := range d.order {
		l := d.tasks[id]
		for _, w := range l.waits {
			d.wait(id, l, w)
		}
		for _, r := range l.runs {
			d.run(l, r, pids[r.worker])
		}
	}
}

// names emits the metadata of processes and threads and gives each node and worker a pid: its own, changed to be unique if
// several are in one process, or have one number on different machines.
func (d *drawing) names() map[ids.ClientID]int {
	pids := map[ids.ClientID]int{}
	taken := map[int]bool{}
	free := func(pid int) int {
		for pid = max(pid, 1); taken[pid]; {
			pid += 1 << 22 // above every pid of Linux
		}
		taken[pid] = true
		return pid
	}
	meta := func(kind string, pid, tid int, args map[string]any) {
		d.emit(Record{Name: kind, Ph: "M", PID: pid, TID: tid, Args: args})
	}
	for i := range d.in.Nodes {
		pid := free(d.in.Nodes[i].PID)
		d.pids = append(d.pids, pid)
		meta("process_name", pid, 0, map[string]any{"name": "node " + d.in.Nodes[i].Name})
		meta("process_sort_index", pid, 0, map[string]any{"sort_index": -1})
	}
	for _, c := range slices.SortedFunc(maps.Keys(d.workers), func(a, b ids.ClientID) int { return cmp.Compare(a, b) }) {
		p := d.workers[c]
		if p.Name == "" {
			p.Name = "worker " + c.String()
		}
		pid := free(p.PID)
		pids[c] = pid
		meta("process_name", pid, 0, map[string]any{"name": p.Name})
		for lane := range p.lanes {
			meta("thread_name", pid, lane+1, map[string]any{"name": fmt.Sprintf("lane %d", lane+1)})
		}
	}
	return pids
}

func name(l *life) string {
	if o := l.first.Opts; o.Label != "" {
		return o.Label
	}
	return l.first.Opts.Func
}

// wait is a nestable asynchronous slice: waits of many tasks overlap.
func (d *drawing) wait(id ids.TaskID, l *life, w wait) {
	r := Record{Name: w.state.String(), Cat: "wait", Ph: "b", Ts: d.us(w.start), PID: d.pids[l.node], TID: 0, ID: id.String(),
		Args: map[string]any{"task": id.String(), "func": name(l)}}
	d.emit(r)
	r.Ph, r.Ts, r.Args = "e", d.us(w.end), nil
	d.emit(r)
}

// run is a complete slice on its lane.
func (d *drawing) run(l *life, r *run, pid int) {
	dur := float64(r.end-r.start) / 1e3
	args := map[string]any{
		"task": r.task.String(), "job": r.task.Job().String(), "attempt": r.attempt, "kind": events.KindName(l.first.Kind),
	}
	switch {
	case r.open:
		args["state"] = "RUNNING"
	case r.state != 0:
		args["state"] = r.state.String()
	}
	if r.reason != "" {
		args["reason"] = r.reason
	}
	d.emit(Record{Name: name(l), Cat: "task", Ph: "X", Ts: d.us(r.start), Dur: &dur, PID: pid, TID: r.lane + 1, Args: args})
}
