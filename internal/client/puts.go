package client

import (
	"context"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/wire"
)

// puts makes objects, small ones in messages and large ones in the segment.
type puts struct {
	*base
	memory  *memory
	handles *handles
	outbox  *outbox
	credit  *credit
	creates pending[*creation]
}

// put has the message of an inline put and its result in the table. They are one allocation, apart from the
// handle, so that both go when the value is evicted.
type put struct {
	m wire.PutValue
	r wire.Result
}

// Put makes an object of v, under the next put id of the task that ctx belongs to. Up to InlineMax the value
// itself is kept: the caller must not change it any more, and Get asks nobody. A larger value is copied into the
// segment.
func (ps *puts) Put(ctx context.Context, v wire.Value) (*Handle, error) {
	if err := ps.Err(); err != nil {
		return nil, err
	}
	tc := ps.task(ctx)
	id := tc.NextPut()
	if err := checkMeta(id, v.Meta); err != nil {
		return nil, err
	}
	if len(v.Data) > ps.inline {
		return ps.putLarge(ctx, id, v)
	}
	if ps.credit.on.Load() {
		if err := ps.credit.admit(ctx, tc, wire.CostOfValue(&v)); err != nil {
			return nil, err
		}
	}
	p := &put{m: wire.PutValue{ID: id, Value: v}, r: wire.Result{Kind: wire.ResultInline, Value: v, Size: uint64(len(v.Data))}}
	h, _ := ps.handles.resolvedHandle(id, &p.r)
	if err := ps.outbox.send(&p.m); err != nil {
		h.Release()
		return nil, err
	}
	return h, nil
}

func (ps *puts) putLarge(ctx context.Context, id ids.ObjectID, v wire.Value) (*Handle, error) {
	b, err := ps.CreateFrom(ctx, id, v.Data)
	if err != nil {
		return nil, err
	}
	return b.Seal(v.Meta, v.Refs)
}

func checkMeta(id ids.ObjectID, meta []byte) error {
	if len(meta) > wire.MaxMeta {
		return errs.New(errs.CodeNotEncodable, "object %v: its layout takes %d bytes, at most %d are possible: use a simpler type", id, len(meta), wire.MaxMeta)
	}
	return nil
}
