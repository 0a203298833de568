package call

import (
	"context"
	"reflect"

	"mobula/internal/client"
	"mobula/internal/codec"
	"mobula/internal/errs"
	"mobula/wire"
)

// types caches the codec of every type seen. It depends only on the types themselves, so one serves all clusters
// of the process.
var types = codec.NewRegistry(codec.Refs{Is: isReference, ID: idOf, Attach: attach, Any: bindAny})

// AddCodec adds a codec for types with a layout of their own.
func AddCodec(c codec.Codec) error { return types.Add(c) }

// PlanOf gives the layout of values of type T.
func PlanOf[T any]() *Plan { return types.PlanOf(reflect.TypeFor[T]()) }

// decode decodes a value that c received. It copies into new memory unless alias.
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
