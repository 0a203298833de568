package mobula

import (
	"context"
	"runtime"

	"mobula/internal/client"
	"mobula/internal/codec"
	"mobula/internal/ids"
)

var puts nursery

// Put makes an object of a value, once, to pass to many tasks. A small value does not wait;
// one of more than 100 KiB is written into the store and waits for room there.
func Put[T any](ctx context.Context, v T) (Ref[T], error) {
	tc, err := taskOf(ctx)
	if err != nil {
		return Ref[T]{}, err
	}
	c := tc.Client
	t := codec.Of[T](types)
	var e codec.Encoded
	if data, ok := t.AppendSmall(make([]byte, 0, 9), &v); ok {
		e = codec.Encoded{Meta: t.Meta(), Size: len(data), Inline: data}
	} else if e, err = t.Encode(&v, nil, c.InlineMax()); err != nil {
		return Ref[T]{}, err
	}
	h, small, err := putEncoded(ctx, tc, &e)
	runtime.KeepAlive(v) // the references in it
	if err != nil {
		return Ref[T]{}, err
	}
	if small {
		return Ref[T]{puts.cell(c, h, nil)}, nil
	}
	return Ref[T]{newCell(c, h, nil)}, nil
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
	if !b.Exists() {
		e.Fill(b.Bytes())
	}
	return b.Seal(e.Meta, e.Refs)
}

// Arg is an argument of type T: a value, V(x), or a reference to one.
type Arg[T any] interface{ arg(*T) }

// Value is an argument that is given as it is.
type Value[T any] struct{ v T }

// V makes an argument of a value. It is copied when the call is made: one of more than 100 KiB into the
// store, which may wait for room; Put it once if several calls share it.
func V[T any](v T) Value[T] { return Value[T]{v} }

func (Value[T]) arg(*T) {} //nolint:unused // it makes Value an Arg
