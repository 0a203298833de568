package mobula

import (
	"context"

	"mobula/internal/call"
)

// Put makes an object of a value, once, to pass to many tasks. A small value does not wait;
// one of more than 100 KiB is written into the store and waits for room there.
func Put[T any](ctx context.Context, v T) (Ref[T], error) {
	c, err := call.Put(ctx, v)
	return Ref[T]{c}, err
}

// Arg is an argument of type T: a value, V(x), or a reference to one.
type Arg[T any] interface{ arg(*T) }

// Value is an argument that is given as it is.
type Value[T any] struct{ v T }

// V makes an argument of a value. It is copied when the call is made: one of more than 100 KiB into the
// store, which may wait for room; Put it once if several calls share it.
func V[T any](v T) Value[T] { return Value[T]{v} }

func (Value[T]) arg(*T) {} //nolint:unused // it makes Value an Arg
