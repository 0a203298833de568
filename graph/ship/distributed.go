package ship

import (
	"context"
	"errors"
	"reflect"

	"github.com/fxamacker/cbor/v2"

	"mobula/graph/run"
	"mobula/graph/spec"
	"mobula/internal/client"
	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/wire"
)

// Distributed is an executor on the node's graph scheduler.
type Distributed struct {
	*Runtime
	Saturation float64 // worker-saturation
	Failures   int     // how many workers have to die while they run a task for it to fail
}

// Run implements spec.Executor.
func (x Distributed) Run(ctx context.Context, p *spec.Plan) ([]reflect.Value, error) {
	k, err := newPacker(ctx, x.Runtime, p)
	if err != nil {
		return nil, err
	}
	defer k.close()
	r, err := newRequest(k, x.Saturation, x.Failures)
	if err != nil {
		return nil, err
	}
	g, err := submit(r)
	if err != nil {
		return nil, p.Failed(ctx, err)
	}
	defer g.close()
	if err := g.wait(ctx); err != nil {
		return nil, p.Failed(ctx, err)
	}
	out := make([]reflect.Value, len(p.Wanted))
	for i, t := range p.Wanted {
		if out[i], err = x.fetch(ctx, k.tc.Client, g.wanted[i], p.Tasks[t].Func.Out); err != nil {
			return nil, p.Failed(ctx, g.cause(err))
		}
	}
	return out, nil
}

// shipped is a graph that was shipped to the node.
type shipped struct {
	*packer
	id     ids.TaskID
	end    *client.Handle   // of its own result
	wanted []*client.Handle // beside Plan.Wanted
	watch  *client.Watcher
	open   int // wanted results that are not there yet
}

// submit ships a request.
func submit(r *request) (*shipped, error) {
	b, err := cbor.Marshal(&r.Request)
	if err != nil {
		return nil, err
	}
	body, done, err := r.bytesArg(b)
	if err != nil {
		return nil, err
	}
	defer done()
	c := r.tc.Client
	g := &shipped{packer: r.packer, id: r.tc.NextTask(), watch: c.NewWatcher()}
	t := &wire.TaskSpec{
		ID: g.id, Parent: r.tc.Base(), Args: []wire.Arg{body, r.references()},
		Opts: &wire.TaskOptions{Func: run.Func, NumReturns: 1, Resources: []wire.Resource{}, MaxRetries: Failures, Label: "graph", MaxConcurrency: 1, MaxPendingCalls: -1},
	}
	r.trace(t)
	for _, w := range g.p.Wanted {
		t.Promises = append(t.Promises, uint32(w)+1)
		g.wanted = append(g.wanted, c.Promised(g.taskID(w).Return(0)))
	}
	hs, err := c.Submit(r.ctx, t)
	if err != nil {
		for _, h := range g.wanted {
			h.Release()
		}
		return nil, err
	}
	g.end = hs[0]
	return g, nil
}

// taskID is the id of a task of the graph.
func (g *shipped) taskID(t int32) ids.TaskID { return ids.Derive(g.id, uint64(t)+1) }

// wait waits until everything wanted is there, or one has failed.
func (g *shipped) wait(ctx context.Context) error {
	g.open = len(g.wanted)
	if err := g.watch.Watch(g.wanted); err != nil {
		return err
	}
	for g.open > 0 {
		if err := g.watch.Wait(ctx); err != nil {
			return err
		}
		for _, x := range g.watch.Take(nil) {
			g.open--
			if x.Result.Kind == wire.ResultError {
				return g.cause(g.Hold(g.tc.Client, failure(g.p.Tasks[g.p.Wanted[x.Token]].Key, x.Result)))
			}
		}
	}
	return nil
}

// cause finds, in the error of a wanted result, the task that failed by an error of its own.
func (g *shipped) cause(err error) error {
	e, ok := errors.AsType[*errs.Error](err)
	if !ok {
		return err
	}
	index := make(map[string]int32, len(g.p.Tasks))
	for t := range g.p.Tasks {
		index[g.taskID(int32(t)).String()] = int32(t)
	}
	out := err
	for ; ; e = e.Cause[0] {
		if t, ok := index[e.Task]; ok {
			out = &spec.TaskError{Key: g.p.Tasks[t].Key, Err: e}
		}
		if len(e.Cause) == 0 {
			return out
		}
	}
}

// close releases everything. It cancels a graph with open results.
func (g *shipped) close() {
	if g.open > 0 {
		for i := range g.wanted {
			g.watch.Forget(i)
		}
		g.tc.Client.Abandon(g.id)
	}
	for _, h := range g.wanted {
		h.Release()
	}
	g.end.Release()
}
