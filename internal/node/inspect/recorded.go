package inspect

import (
	"context"
	"fmt"
	"os"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/internal/state"
	"mobula/raylet"
	"mobula/raylet/owner/task"
	"mobula/telemetry/events"
	"mobula/telemetry/timeline"
	"mobula/wire"
)

// Recording is the task events that a node remembers, and its workers, as they go to the node that draws a timeline.
type Recording struct {
	Node      string
	PID       int
	Dropped   uint64
	Lost      uint64
	Funcs     []RecordedFunc
	Events    []RecordedEvent
	Processes []RecordedProcess
}

// RecordedFunc is what calls with the same options are called.
type RecordedFunc struct{ Func, Label string }

// RecordedEvent is an event; Func is its place in Recording.Funcs.
type RecordedEvent struct {
	_                  struct{} `cbor:",toarray"`
	Task               []byte
	Func               int
	At, Started, Ended int64
	Worker             uint64
	Reason             *errs.Error // without causes
	Attempt            uint32
	State              task.State
	Kind               wire.TaskKind
}

// RecordedProcess is a worker.
type RecordedProcess struct {
	Client uint64
	PID    int
	Name   string
}

// Processes are workers' names in a timeline.
type Processes = map[ids.ClientID]timeline.Process

// Record gives what the node remembers of the jobs whose home it is.
func (n *Inspector) Record(ctx context.Context, r state.TimelineRequest) (out Recording, err error) {
	rec := n.node.Parts().Events
	if !rec.Recording() {
		return out, errs.New(errs.CodeInvalid, "node %s records no task events (events.ring is 0)", n.Name)
	}
	out = Recording{Node: n.Name, PID: os.Getpid(), Dropped: rec.Stats().Dropped, Processes: n.processes(ctx)}
	funcs := make(map[*wire.TaskOptions]int)
	parts, _, lost := rec.Since(0)
	out.Lost = lost
	for _, p := range parts {
		for i := range p {
			e := &p[i]
			if e.At < r.Since || r.Job != "" && e.Task.Job().String() != r.Job {
				continue
			}
			f, known := funcs[e.Opts]
			if !known {
				f = len(out.Funcs)
				funcs[e.Opts] = f
				out.Funcs = append(out.Funcs, RecordedFunc{Func: e.Opts.Func, Label: e.Opts.Label})
			}
			x := RecordedEvent{
				Task: e.Task[:], Func: f, At: e.At, Started: e.Started, Ended: e.Ended, Worker: uint64(e.Worker), Attempt: e.Attempt, State: e.State, Kind: e.Kind,
			}
			if e.Reason != nil {
				x.Reason = &errs.Error{Code: e.Reason.Code, Msg: e.Reason.Msg, Name: e.Reason.Name}
			}
			out.Events = append(out.Events, x)
		}
	}
	return out, nil
}

// Draw gives what a timeline is drawn of. ahead is how far the clock of the recording's node is ahead of this one's.
func (r *Recording) Draw(ahead int64, to Processes) (timeline.Node, error) {
	n := timeline.Node{Name: r.Node, PID: r.PID, Dropped: r.Dropped, Lost: r.Lost, Events: make([]events.Event, len(r.Events))}
	opts := make([]wire.TaskOptions, len(r.Funcs))
	for i, f := range r.Funcs {
		opts[i] = wire.TaskOptions{Func: f.Func, Label: f.Label}
	}
	for i := range r.Events {
		x, e := &r.Events[i], &n.Events[i]
		if len(x.Task) != len(e.Task) || x.Func < 0 || x.Func >= len(opts) || int(x.State) >= len(task.States()) {
			return n, errs.New(errs.CodeProtocol, "event %d of node %s is none: %+v", i, r.Node, *x)
		}
		*e = events.Event{Opts: &opts[x.Func], At: x.At - ahead, Worker: ids.ClientID(x.Worker), Reason: x.Reason, Attempt: x.Attempt, State: x.State, Kind: x.Kind}
		copy(e.Task[:], x.Task)
		if x.Started != 0 {
			e.Started = x.Started - ahead
		}
		if x.Ended != 0 {
			e.Ended = x.Ended - ahead
		}
	}
	for _, p := range r.Processes {
		to[ids.ClientID(p.Client)] = timeline.Process{PID: p.PID, Name: p.Name}
	}
	return n, nil
}

// processes names the workers that there are on this node; of those that are gone only the number is known.
func (n *Inspector) processes(ctx context.Context) (out []RecordedProcess) {
	add := func(id ids.ClientID, pid int, name string) {
		if n.node.Listed() != "" {
			name += " on node " + n.node.Listed()
		}
		out = append(out, RecordedProcess{Client: uint64(id), PID: pid, Name: name})
	}
	for _, s := range n.node.Clients() {
		switch {
		case s.PID == 0: // its own node names it
		case s.Local:
			add(s.ID, int(s.PID), fmt.Sprintf("embedded slots %v of job %v", s.ID, s.Job))
		default:
			add(s.ID, int(s.PID), fmt.Sprintf("worker %v of job %v", s.ID, s.Job))
		}
	}
	infos, err := inRaylet(ctx, n, (*raylet.Core).Workers)
	if err != nil {
		return out // the names say less
	}
	for _, w := range infos {
		name := fmt.Sprintf("%s %v of job %v", w.Slot, w.Worker, w.Job)
		if w.Func != "" {
			name += " for " + w.Func
		}
		add(w.Client, int(w.PID), name)
	}
	return out
}
