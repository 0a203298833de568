package shell

import (
	"context"
	"slices"
	"time"

	"mobula/graph/run"
	"mobula/internal/client"
	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/wire"
)

// stopTimeout bounds how long the end of a graph waits for its actor.
const stopTimeout = 5 * time.Second

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
	r.handles[t] = hs
	r.ledger.Mark(t, run.Sent)
	return nil
}

// refused is the error of a task that could not be submitted.
func (r *runner) refused(t int32, err error) error {
	e := errs.New(errs.From(err).Code, "graph: %q could not be submitted: %v", r.w.Keys[t], err)
	e.Task = r.id(t).String()
	return e
}

// spec is a task as its owner takes it: the payload, its dependencies in the order of the request, its outer
// objects.
func (r *runner) spec(t int32) (*wire.TaskSpec, error) {
	outer, deps := r.w.OuterOf(t), r.w.DepsOf(t)
	args := make([]wire.Arg, 0, 1+len(deps)+len(outer))
	if _, _, size := r.w.PayloadOf(t); size < 0 {
		args = append(args, wire.Arg{Ref: r.outer[outer[0]]})
		outer = outer[1:]
	} else {
		payload, err := r.blobs.payload(r.ctx, r.w, t)
		if err != nil {
			return nil, err
		}
		args = append(args, wire.Arg{Value: wire.Value{Meta: r.w.Meta, Data: payload}})
	}
	for j, d := range deps {
		args = append(args, wire.Arg{Ref: r.id(d).Return(int(r.w.PartOf(t, j)))})
	}
	for _, o := range outer {
		args = append(args, wire.Arg{Ref: r.outer[o]})
	}
	spec := r.specOf(t)
	spec.Args, spec.Deadline = args, r.w.Note(t).Deadline(r.c.Now())
	return spec, nil
}

// specOf is a task's spec without its arguments.
func (r *runner) specOf(t int32) *wire.TaskSpec {
	spec := &wire.TaskSpec{ID: r.id(t), Parent: r.parent, Opts: r.opts.Of(t), Trace: r.trace}
	if spec.Trace.Sampled() {
		spec.Submitted = r.c.Now()
	}
	return spec
}

// pass fails wanted tasks that were not submitted. The last task of the chain failed by its own error, and each
// before it takes the result of the next. So it submits them, and the owner fails each like any task with a failed
// argument.
func (r *runner) pass(chain []int32) {
	for i, t := range slices.Backward(chain) {
		if o := r.ledger.Outcome(t); o == run.Sent || o == run.Made || o == run.Failed && r.handles[t] != nil {
			continue
		}
		spec := r.specOf(t)
		if i == len(chain)-1 {
			return // it was never submitted, and the graph ends with its error
		}
		part := 0
		spec.Args = []wire.Arg{{Ref: r.id(chain[i+1]).Return(part)}}
		hs, err := r.c.Submit(r.ctx, spec)
		if err != nil {
			return // the client is gone, or the graph was cancelled: the promises fail
		}
		r.handles[t] = hs
		r.ledger.Mark(t, run.Failed)
	}
}

// blobs reads payloads from the objects they were shipped in; it keeps the last two pinned.
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

// payload copies the payload, since the submitted task outlives the blob.
func (b *blobs) payload(ctx context.Context, w *run.Work, t int32) ([]byte, error) {
	blob, from, n := w.PayloadOf(t)
	data, err := b.get(ctx, blob)
	if err != nil {
		return nil, err
	}
	if from+n > int64(len(data)) {
		return nil, errs.New(errs.CodeInvalid, "graph: %q: its payload ends at byte %d of a blob of %d", w.Keys[t], from+n, len(data))
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
