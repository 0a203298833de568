package ship

import (
	"context"
	"maps"
	"reflect"
	"runtime"

	"mobula/graph"
	"mobula/graph/internal/drive"
	"mobula/graph/run"
	"mobula/graph/spec"
	"mobula/internal/client"
	"mobula/internal/ids"
	"mobula/wire"
)

// Failures is the default number of workers that have to die while they run a task for it to fail.
const Failures = graph.DefaultAllowedFailures

// Processes is an executor on worker processes, each with one task at a time.
type Processes struct {
	*Runtime
	Tasks int // at once; 0: as many as GOMAXPROCS says
}

// Run implements spec.Executor.
func (x Processes) Run(ctx context.Context, p *spec.Plan) ([]reflect.Value, error) {
	k, err := newPacker(ctx, x.Runtime, p)
	if err != nil {
		return nil, err
	}
	r := &processes{packer: k, watch: k.tc.Client.NewWatcher(), handles: make([]*client.Handle, len(p.Tasks)), running: make(map[int32]ids.TaskID), options: options{}}
	defer r.close()
	n := x.Tasks
	if n <= 0 {
		n = runtime.GOMAXPROCS(0)
	}
	if err := drive.Run(ctx, p.Graph, drive.Limits{Tasks: n}, r); err != nil {
		return nil, p.Failed(ctx, err)
	}
	out := make([]reflect.Value, len(p.Wanted))
	for i, t := range p.Wanted {
		if out[i], err = x.fetch(ctx, k.tc.Client, r.handles[t], p.Tasks[t].Func.Out); err != nil {
			return nil, p.Failed(ctx, err)
		}
	}
	return out, nil
}

// processes is the drive.Runner of one run.
type processes struct {
	*packer
	watch   *client.Watcher
	handles []*client.Handle // handles of tasks under way, and of results that are needed
	running map[int32]ids.TaskID
	options options
	failed  []drive.Ended // tasks that could not be submitted
}

// Start implements drive.Runner.
func (r *processes) Start(ctx context.Context, t int32) {
	if err := r.submit(ctx, t); err != nil {
		r.failed = append(r.failed, drive.Ended{Task: t, Err: err})
	}
}

func (r *processes) submit(ctx context.Context, t int32) error {
	data, objects, err := r.task(t)
	if err != nil {
		return err
	}
	payload, done, err := r.bytesArg(data)
	if err != nil {
		return err
	}
	defer done()
	args := []wire.Arg{payload}
	for _, d := range r.p.Tasks[t].Deps {
		args = append(args, wire.Arg{Ref: r.handles[d].Passed()})
	}
	for _, o := range objects {
		args = append(args, wire.Arg{Ref: r.objects[o].Passed()})
	}
	s := &wire.TaskSpec{ID: r.tc.NextTask(), Parent: r.tc.Base(), Args: args, Opts: r.options.of(r.p, t)}
	r.trace(s)
	hs, err := r.watch.Submit(ctx, s, int(t))
	if err != nil {
		return err
	}
	r.handles[t], r.running[t] = hs[0], s.ID
	return nil
}

// Wait implements drive.Runner.
func (r *processes) Wait(ctx context.Context) ([]drive.Ended, error) {
	out := r.failed
	r.failed = nil
	for len(out) == 0 {
		if err := r.watch.Wait(ctx); err != nil {
			return nil, err
		}
		for _, x := range r.watch.Take(nil) {
			t := int32(x.Token)
			delete(r.running, t)
			e := drive.Ended{Task: t}
			if x.Result.Kind == wire.ResultError {
				e.Err = r.Hold(r.tc.Client, failure(r.p.Tasks[t].Key, x.Result))
				r.Free(t)
			}
			out = append(out, e)
		}
	}
	return out, nil
}

// Free implements drive.Runner.
func (r *processes) Free(t int32) {
	r.handles[t].Release()
	r.handles[t] = nil
}

// close releases everything, and cancels tasks that still run.
func (r *processes) close() {
	for t, id := range r.running {
		r.watch.Forget(int(t))
		r.tc.Client.Abandon(id)
	}
	for t, h := range r.handles {
		if h != nil {
			r.Free(int32(t))
		}
	}
	r.packer.close()
}

// options gives tasks their options: one shared object for all with the same.
type options map[optionKey]*wire.TaskOptions

type optionKey struct {
	notes *spec.Annotations
	label string
}

func (o options) of(p *spec.Plan, t int32) *wire.TaskOptions {
	k := optionKey{p.Tasks[t].Notes, graph.KeyPrefix(p.Graph.Group(t))}
	x := o[k]
	if x == nil {
		x = noteOf(k.notes).Options(Func, k.label, Failures)
		x.Isolate = true
		o[k] = x
	}
	return x
}

// noteOf turns a task's annotations into the note that the node takes.
func noteOf(a *spec.Annotations) *run.Note {
	if a == nil {
		return nil
	}
	return &run.Note{Resources: maps.Clone(a.Resources), Priority: int32(a.Priority), Retries: int32(a.Retries)}
}
