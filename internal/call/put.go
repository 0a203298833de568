package call

import (
	"context"
	"runtime"

	"mobula/internal/client"
	"mobula/internal/codec"
	"mobula/internal/ids"
)

var puts nursery

// Put makes an object of a value.
func Put[T any](ctx context.Context, v T) (*Cell, error) {
	tc, err := taskOf(ctx)
	if err != nil {
		return nil, err
	}
	c := tc.Client
	t := codec.Of[T](types)
	var e codec.Encoded
	if data, ok := t.AppendSmall(make([]byte, 0, 9), &v); ok {
		e = codec.Encoded{Meta: t.Meta(), Size: len(data), Inline: data}
	} else if e, err = t.Encode(&v, nil, c.InlineMax()); err != nil {
		return nil, err
	}
	c.AnnounceOthers(ctx, e.Refs)
	h, small, err := putEncoded(ctx, tc, &e)
	runtime.KeepAlive(v) // the references in it
	if err != nil {
		return nil, err
	}
	if small {
		return puts.cell(c, h, nil), nil
	}
	return newCell(c, h, nil), nil
}

func putEncoded(ctx context.Context, tc *client.TaskContext, e *codec.Encoded) (h *client.Handle, small bool, err error) {
	c := tc.Client
	if e.Fill == nil && e.Size <= c.InlineMax() {
		h, err = c.Put(ctx, e.Value())
		return h, true, err
	}
	h, err = seal(ctx, c, tc.NextPut(), e)
	return h, false, err
}

// seal writes a large value into the segment, once.
func seal(ctx context.Context, c *client.Client, id ids.ObjectID, e *codec.Encoded) (*client.Handle, error) {
	if e.Fill == nil {
		b, err := c.CreateFrom(ctx, id, e.Inline)
		if err != nil {
			return nil, err
		}
		return b.Seal(e.Meta, e.Refs)
	}
	b, err := c.Create(ctx, id, uint64(e.Size))
	if err != nil {
		return nil, err
	}
	e.Fill(b.Bytes())
	return b.Seal(e.Meta, e.Refs)
}
