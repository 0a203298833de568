package call

import (
	"context"
	"reflect"

	"mobula/internal/client"
	"mobula/internal/codec"
	"mobula/internal/errs"
	"mobula/wire"
)

// types holds the codec of every type that was met. It only caches what follows from
// the types themselves, so one serves all clusters of the process.
var types = codec.NewRegistry(codec.Refs{Is: isReference, ID: idOf, Attach: attach, Any: bindAny})

// AddCodec adds a codec for types with a layout of their own.
func AddCodec(c codec.Codec) error { return types.Add(c) }

// PlanOf is how values of type T are laid out.
func PlanOf[T any]() *Plan { return types.PlanOf(reflect.TypeFor[T]()) }

// decode decodes a value that c got, into memory of the caller's own unless alias.
func decode[T any](c *client.Client, v wire.Value, alias bool) (T, error) {
	return codec.Of[T](types).Decode(v, alias, binder{c})
}

// taskOf is the task that ctx belongs to.
func taskOf(ctx context.Context) (*client.TaskContext, error) {
	if tc := client.FromContext(ctx); tc != nil {
		return tc, nil
	}
	return nil, errs.New(errs.CodeInvalid, "the context belongs to no cluster: pass on the one that Main or the task got, or use Cluster.Context")
}
