package mobula

import (
	"context"

	"mobula/internal/call"
)

// Put makes an object of a value, so that it can be passed to many tasks. Put of a small value does
// not wait; a value of more than 100 KiB is written into the store, and Put waits for room there.
func Put[T any](ctx context.Context, v T) (Ref[T], error) {
	c, err := call.Put(ctx, v)
	return Ref[T]{c}, err
}

// Arg is an argument of type T: a value, V(x), or a reference to one.
type Arg[T any] interface{ arg(*T) }

// Value is an argument that is given by value.
type Value[T any] struct{ v T }

// V makes an argument of a value. The value is copied when the call is made. More than 100 KiB are
// copied into the store, where the call may have to wait for room; if several calls share the value,
// Put it once.
func V[T any](v T) Value[T] { return Value[T]{v} }

func (Value[T]) arg(*T) {} //nolint:unused // it makes Value an Arg
