package timeline

import (
	"bufio"
	"cmp"
	"encoding/json"
	"io"
	"slices"
	"strings"

	"mobula/internal/ids"
	"mobula/raylet/owner/task"
	"mobula/telemetry/events"
)

// Process is a worker's process in the timeline.
type Process struct {
	PID  int
	Name string // "task host 4"
}

// Input is the data to draw. All times are by one clock.
type Input struct {
	Nodes     []Node
	Processes map[ids.ClientID]Process // others are named after their id
}

// Node is what one node has recorded: of the jobs whose home it is, wherever their tasks ran.
type Node struct {
	Name    string
	PID     int
	Events  []events.Event
	Dropped uint64 // events that were never recorded, for the metadata
	Lost    uint64 // events that are no longer in memory
}

// Record is one record of the format. Ts and Dur are microseconds.
type Record struct {
	Name string         `json:"name"`
	Cat  string         `json:"cat,omitempty"`
	Ph   string         `json:"ph"`
	Ts   float64        `json:"ts"`
	Dur  *float64       `json:"dur,omitempty"`
	PID  int            `json:"pid"`
	TID  int            `json:"tid"`
	ID   string         `json:"id,omitempty"`
	Args map[string]any `json:"args,omitempty"`
}

// Write writes the document.
func Write(w io.Writer, in Input) error {
	d := &drawing{in: in, workers: make(map[ids.ClientID]*process), tasks: make(map[ids.TaskID]*life)}
	d.collect()
	bw := bufio.NewWriter(w)
	d.w = bw
	d.raw(`{"displayTimeUnit":"ms","otherData":`)
	d.json(d.about())
	d.raw(`,"traceEvents":[`)
	d.draw()
	d.raw("\n]}\n")
	if d.err != nil {
		return d.err
	}
	return bw.Flush()
}

// about is the document's metadata.
func (d *drawing) about() map[string]any {
	var names []string
	var events int
	var dropped, lost uint64
	for i := range d.in.Nodes {
		n := &d.in.Nodes[i]
		names, events, dropped, lost = append(names, n.Name), events+len(n.Events), dropped+n.Dropped, lost+n.Lost
	}
	return map[string]any{"node": strings.Join(names, ", "), "events": events, "dropped": dropped, "lost": lost, "base_unix_ns": d.base}
}

// run is an attempt on a worker.
type run struct {
	task       ids.TaskID
	attempt    uint32
	start, end int64
	worker     ids.ClientID
	lane       int
	state      task.State
	reason     string
	open       bool // still running when the document was made
}

// life collects the events of a task.
type life struct {
	node    int // that has recorded it
	first   *events.Event
	waits   []wait
	current *events.Event // the last change
	runs    []*run
	guess   int64 // the owner's estimate of the attempt's start
}

// wait is the time in one state before a run.
type wait struct {
	state      task.State
	start, end int64
}

type process struct {
	Process
	lanes []int64 // when each lane is free again
	runs  []*run
}

type drawing struct {
	in      Input
	base    int64
	end     int64
	tasks   map[ids.TaskID]*life
	order   []ids.TaskID
	workers map[ids.ClientID]*process
	pids    []int // of the nodes
	w       *bufio.Writer
	some    bool
	err     error
}

// collect makes runs and waits of the events, which come in the order of each owner.
func (d *drawing) collect() {
	for n := range d.in.Nodes {
		d.bounds(d.in.Nodes[n].Events)
	}
	d.base -= d.base % 1e9
	for n := range d.in.Nodes {
		evs := d.in.Nodes[n].Events
		for i := range evs {
			d.step(n, &evs[i])
		}
	}
	for _, id := range d.order { // what has not ended
		l := d.tasks[id]
		if c := l.current; c.State.OnWorker() && l.guess != 0 {
			l.runs = append(l.runs, &run{task: id, attempt: c.Attempt, start: l.guess, end: d.end, worker: c.Worker, state: c.State, open: true})
		} else if !c.State.Terminal() && !c.State.OnWorker() {
			l.waits = append(l.waits, wait{c.State, c.At, d.end})
		}
	}
	d.place()
}

// bounds finds the first and the last time.
func (d *drawing) bounds(evs []events.Event) {
	for i := range evs {
		e := &evs[i]
		at := e.At
		if e.Started != 0 {
			at = min(at, e.Started)
		}
		if d.base == 0 || at < d.base {
			d.base = at
		}
		d.end = max(d.end, e.At, e.Ended)
	}
}

func (d *drawing) step(node int, e *events.Event) {
	l := d.tasks[e.Task]
	if l == nil {
		l = &life{node: node, first: e}
		d.tasks[e.Task] = l
		d.order = append(d.order, e.Task)
	} else if c := l.current; !c.State.Terminal() && !c.State.OnWorker() || c.State == task.Submitted {
		end := e.At
		if e.Started != 0 {
			end = min(end, e.Started)
		}
		if end > c.At {
			l.waits = append(l.waits, wait{c.State, c.At, end})
		}
	}
	switch {
	case e.State == task.Running && e.Ended != 0:
		l.runs = append(l.runs, &run{task: e.Task, attempt: e.Attempt, start: e.Started, end: max(e.Ended, e.Started), worker: e.Worker, state: task.Finished})
		l.guess = 0
	case e.State.OnWorker() && e.State != task.Submitted:
		if l.guess == 0 {
			l.guess = e.At
		}
	default:
		if l.guess != 0 { // it left its worker without a report
			l.runs = append(l.runs, &run{task: e.Task, attempt: l.current.Attempt, start: l.guess, end: max(e.At, l.guess), worker: l.current.Worker})
			l.guess = 0
		}
		if n := len(l.runs); n > 0 && l.runs[n-1].attempt == e.Attempt {
			l.runs[n-1].state = e.State
			if e.Reason != nil {
				l.runs[n-1].reason = e.Reason.Error()
			}
		}
	}
	l.current = e
}

// place gives every run a lane of its worker on which nothing else runs at the time.
func (d *drawing) place() {
	for _, id := range d.order {
		for _, r := range d.tasks[id].runs {
			p := d.workers[r.worker]
			if p == nil {
				p = &process{Process: d.in.Processes[r.worker]}
				d.workers[r.worker] = p
			}
			p.runs = append(p.runs, r)
		}
	}
	for _, p := range d.workers {
		slices.SortStableFunc(p.runs, func(a, b *run) int { return cmp.Compare(a.start, b.start) })
		for _, r := range p.runs {
			r.lane = slices.IndexFunc(p.lanes, func(free int64) bool { return free <= r.start })
			if r.lane < 0 {
				r.lane = len(p.lanes)
				p.lanes = append(p.lanes, 0)
			}
			p.lanes[r.lane] = r.end
		}
	}
}

func (d *drawing) json(v any) {
	b, err := json.Marshal(v)
	if err != nil && d.err == nil {
		d.err = err
	}
	d.raw(string(b))
}

func (d *drawing) raw(s string) {
	if _, err := d.w.WriteString(s); err != nil && d.err == nil {
		d.err = err
	}
}

func (d *drawing) emit(r Record) {
	if d.some {
		d.raw(",\n")
	} else {
		d.raw("\n")
	}
	d.some = true
	d.json(r)
}

// us converts to the document's time.
func (d *drawing) us(ns int64) float64 { return float64(ns-d.base) / 1e3 }
