package run

import (
	"context"
	"math"
	"slices"
	"time"

	"mobula/graph"
	"mobula/internal/client"
	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/wire"
)

// stopTimeout bounds how long the end of a graph waits for its actor.
const stopTimeout = 5 * time.Second

// defaultRetries is how often a task runs again whose errors are retried, unless told.
const defaultRetries = 3

// bytesMeta is the layout of plain bytes (package codec).
var bytesMeta = []byte{1, 1, 6, 0}

// submit gives a task to its owner and watches its first result.
func (r *runner) submit(t int32) error {
	spec, err := r.spec(t)
	if err != nil {
		return err
	}
	hs, err := r.watch.Submit(r.ctx, spec, int(t))
	if err != nil {
		return err
	}
	e := &r.ledger.tasks[t]
	e.handles, e.state = hs, sent
	return nil
}

// spec is a task as its owner takes it: the payload, what it depends on in the order of the request, its
// outer objects.
func (r *runner) spec(t int32) (*wire.TaskSpec, error) {
	outer := r.w.outerOf(t)
	args := make([]wire.Arg, 0, 1+len(r.w.deps[t])+len(outer))
	if r.w.length[t] < 0 {
		args = append(args, wire.Arg{Ref: r.outer[outer[0]]})
		outer = outer[1:]
	} else {
		payload, err := r.blobs.payload(r.ctx, r.w, t)
		if err != nil {
			return nil, err
		}
		args = append(args, wire.Arg{Value: wire.Value{Meta: r.w.Meta, Data: payload}})
	}
	for j, d := range r.w.deps[t] {
		part := int32(0)
		if r.w.parts != nil {
			part = r.w.parts[t][j]
		}
		args = append(args, wire.Arg{Ref: r.id(d).Return(int(part))})
	}
	for _, o := range outer {
		args = append(args, wire.Arg{Ref: r.outer[o]})
	}
	spec := r.specOf(t)
	spec.Args, spec.Deadline = args, r.w.note(t).deadline(r.c.Now())
	return spec, nil
}

// specOf is a task's spec without its arguments.
func (r *runner) specOf(t int32) *wire.TaskSpec {
	spec := &wire.TaskSpec{ID: r.id(t), Parent: r.parent, Opts: r.opts.of(t), Trace: r.trace}
	if spec.Trace.Sampled() {
		spec.Submitted = r.c.Now()
	}
	return spec
}

func (w *work) outerOf(t int32) []int32 {
	if w.outer == nil {
		return nil
	}
	return w.outer[t]
}

// pass fails wanted tasks that were not submitted: the last of a chain failed of itself, and each before it
// takes the next one's result. The owner fails it as it fails any task one of whose arguments has failed.
func (r *runner) pass(chain []int32) {
	for i, t := range slices.Backward(chain) {
		e := &r.ledger.tasks[t]
		if e.state == sent || e.state == made || e.state == failed && e.handles != nil {
			continue
		}
		spec := r.specOf(t)
		if i == len(chain)-1 {
			return // it was never submitted: it fails with the promise
		}
		part := 0
		spec.Args = []wire.Arg{{Ref: r.id(chain[i+1]).Return(part)}}
		hs, err := r.c.Submit(r.ctx, spec)
		if err != nil {
			return // the client is gone, or the graph was cancelled: its promises fail
		}
		e.handles, e.state = hs, failed
	}
}

// options gives tasks what they share, one object for all that are alike.
type options struct {
	w    *work
	made map[optionKey]*wire.TaskOptions
}

type optionKey struct {
	note  int32
	label string
}

func newOptions(w *work) *options {
	return &options{w: w, made: make(map[optionKey]*wire.TaskOptions)}
}

func (o *options) of(t int32) *wire.TaskOptions {
	k := optionKey{note: -1, label: graph.KeyPrefix(o.w.graph.Group(t))}
	if o.w.noteOf != nil {
		k.note = o.w.noteOf[t]
	}
	x := o.made[k]
	if x == nil {
		x = o.w.note(t).Options(o.w.Func, k.label, o.w.Failures)
		o.made[k] = x
	}
	return x
}

// Options are those of a call of a function for a task of which n, or nil, is said. Of failures workers' deaths it fails.
func (n *Note) Options(function, label string, failures int32) *wire.TaskOptions {
	x := &wire.TaskOptions{Func: function, NumReturns: 1, MaxRetries: max(failures-1, 0), Label: label, MaxConcurrency: 1, MaxPendingCalls: -1}
	if n != nil {
		n.apply(x)
	}
	return x
}

// apply writes what a note says into options.
func (n *Note) apply(x *wire.TaskOptions) {
	switch {
	case n.Failures < 0:
		x.MaxRetries = -1
	case n.Failures > 0:
		x.MaxRetries = n.Failures - 1
	}
	x.NumReturns = max(n.Returns, 1)
	x.Isolate, x.Spread = n.Isolated, n.Spread
	x.RetryExceptions, x.RetryOnly = n.Errors || n.Retries > 0, n.Only
	switch {
	case n.Retries > 0:
		x.ExceptionRetries = n.Retries
	case n.Errors && n.Failures == 0: // as a task outside of a graph; its workers' deaths are the graph's to count
		x.ExceptionRetries = defaultRetries
	}
	if n.CPU == nil && len(n.Resources) == 0 {
		return
	}
	cpu := 1.0
	if n.CPU != nil {
		cpu = *n.CPU
	}
	x.Resources = []wire.Resource{{Name: "CPU", Amount: thousandths(cpu)}}
	for name, amount := range n.Resources {
		switch name {
		case "CPU":
			x.Resources[0].Amount = thousandths(amount)
		case "memory":
			x.Resources = append(x.Resources, wire.Resource{Name: name, Amount: int64(amount)})
		default:
			x.Resources = append(x.Resources, wire.Resource{Name: name, Amount: thousandths(amount)})
		}
	}
	slices.SortFunc(x.Resources, func(a, b wire.Resource) int {
		switch {
		case a.Name < b.Name:
			return -1
		case a.Name > b.Name:
			return 1
		}
		return 0
	})
}

// deadline is that of a task which is submitted now.
func (n *Note) deadline(now int64) int64 {
	if n == nil || n.Timeout <= 0 {
		return 0
	}
	return now + n.Timeout
}

func thousandths(x float64) int64 { return int64(math.Ceil(x * 1000)) }

// blobs reads payloads out of the objects they were shipped in; the last two are kept pinned.
type blobs struct {
	c    *client.Client
	ids  []ids.ObjectID
	held []heldBlob
}

type heldBlob struct {
	index  int32
	handle *client.Handle
	data   client.Data
}

const keepBlobs = 2

// payload is a copy: what is submitted outlives the blob.
func (b *blobs) payload(ctx context.Context, w *work, t int32) ([]byte, error) {
	data, err := b.get(ctx, w.blob[t])
	if err != nil {
		return nil, err
	}
	from, n := w.offset[t], int64(w.length[t])
	if from+n > int64(len(data)) {
		return nil, invalid("%q: its payload ends at byte %d of a blob of %d", w.Keys[t], from+n, len(data))
	}
	return slices.Clone(data[from : from+n]), nil
}

func (b *blobs) get(ctx context.Context, i int32) ([]byte, error) {
	for _, h := range b.held {
		if h.index == i {
			return h.data.Value.Data, nil
		}
	}
	if len(b.held) == keepBlobs {
		b.held[0].release()
		b.held = slices.Delete(b.held, 0, 1)
	}
	h := heldBlob{index: i, handle: b.c.Bind(b.ids[i])}
	var err error
	if h.data, err = b.c.Get1(ctx, h.handle); err != nil {
		h.handle.Release()
		return nil, errs.New(errs.From(err).Code, "the graph's blob %d: %v", i, err)
	}
	b.held = append(b.held, h)
	return h.data.Value.Data, nil
}

func (h heldBlob) release() {
	h.data.Release()
	h.handle.Release()
}

func (b *blobs) close() {
	for _, h := range b.held {
		h.release()
	}
	b.held = nil
}
