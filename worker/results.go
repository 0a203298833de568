package worker

import (
	"context"

	"mobula/internal/client"
	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/internal/registry"
	"mobula/wire"
)

// results makes a function's results; one is room for a single one. Large values go into the segment one after another. Each is
// sealed before room for the next is asked for, so results that together are larger than the store can spill.
func (r *runner) results(ctx context.Context, one *[1]wire.Result, outs []registry.Output) (rs []wire.Result, keep any, err error) {
	spec := r.task.Spec
	if spec.Opts.NumReturns == 0 && spec.Kind == wire.TaskActorCall { // nobody wants them
		for i := range outs {
			if b := outs[i].Buffer; b != nil {
				b.Abort()
			}
		}
		return nil, nil, nil
	}
	if len(outs) != int(spec.Opts.NumReturns) {
		return nil, nil, errs.New(errs.CodeReturnMismatch, "%q gave %d results, the caller expects %d: run the same binary everywhere", spec.Opts.Func, len(outs), spec.Opts.NumReturns)
	}
	rs = one[:]
	if len(outs) != 1 {
		rs = make([]wire.Result, len(outs))
	}
	var keeps []any
	room := wire.MessageValues
	for i := range outs {
		o := &outs[i]
		if err := r.result(ctx, o, r.call.id().Return(i), &rs[i], room); err != nil {
			return nil, nil, err
		}
		if rs[i].Kind == wire.ResultInline {
			room -= o.Size
		}
		if o.Keep == nil {
			continue
		}
		if keep == nil {
			keep = o.Keep
		} else {
			keeps = append(keeps, o.Keep)
		}
	}
	if keeps != nil {
		keep = append(keeps, keep)
	}
	return rs, keep, nil
}

// result makes one object of an output: inline, if there is room for it in the message, or created, written and sealed.
func (r *runner) result(ctx context.Context, o *registry.Output, id ids.ObjectID, res *wire.Result, room int) error {
	if len(o.Meta) > wire.MaxMeta {
		return errs.New(errs.CodeNotEncodable, "the layout of a result takes %d bytes, at most %d are possible: use a simpler type", len(o.Meta), wire.MaxMeta)
	}
	res.Value.Meta, res.Value.Refs = o.Meta, o.Refs
	if o.Buffer != nil {
		if err := r.announce(); err != nil {
			o.Buffer.Abort()
			return err
		}
		res.Kind, res.Size = wire.ResultStored, o.Buffer.Size()
		return r.buffered(ctx, o, id)
	}
	res.Size = uint64(o.Size)
	if o.Size <= min(r.lane.e.inline, room) {
		res.Kind = wire.ResultInline
		res.Value.Data = o.Inline
		if o.Inline == nil && o.Fill != nil {
			res.Value.Data = make([]byte, o.Size)
			o.Fill(res.Value.Data)
		}
		return nil
	}
	res.Kind = wire.ResultStored
	if err := r.announce(); err != nil {
		return err
	}
	if o.Inline != nil {
		return r.store(ctx, id, o, o.Inline)
	}
	b, err := r.lane.e.c.Create(ctx, id, uint64(o.Size))
	if err != nil {
		return err
	}
	r.made = append(r.made, b) // aborted if Fill panics
	o.Fill(b.Bytes())
	return b.SealReturn(o.Meta, o.Refs)
}

// announce has the owner know of a call that came straight, before a result of it is stored: nobody holds one of a call that the owner does not know.
func (r *runner) announce() error {
	if r.straight == nil {
		return nil
	}
	return r.straight.Announce()
}

func (r *runner) store(ctx context.Context, id ids.ObjectID, o *registry.Output, data []byte) error {
	b, err := r.lane.e.c.CreateFrom(ctx, id, data)
	if err != nil {
		return err
	}
	return b.SealReturn(o.Meta, o.Refs)
}

// buffered seals a buffer that the function wrote itself: in place if it was made under
// the return's id, else by one copy.
func (r *runner) buffered(ctx context.Context, o *registry.Output, id ids.ObjectID) error {
	b := o.Buffer
	if b.ID() == id {
		return b.SealReturn(o.Meta, o.Refs)
	}
	src := b.Bytes()
	if src == nil {
		return errs.New(errs.CodeInvalid, "the buffer returned was sealed or aborted before")
	}
	defer b.Abort()
	return r.store(ctx, id, o, src)
}

var _ client.Blocker = (*call)(nil)
