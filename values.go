package mobula

import (
	"context"
	"reflect"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"mobula/internal/client"
	"mobula/internal/codec"
	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/wire"
)

// types holds the codec of every type that was met. It only caches what follows from
// the types themselves, so one serves all clusters of the process.
var types = codec.NewRegistry(codec.Refs{
	Is:     func(t reflect.Type) bool { return t.Kind() == reflect.Struct && t.Implements(typeOfReference) },
	ID:     func(v reflect.Value) (ids.ObjectID, error) { return v.Interface().(reference).objectID() },
	Attach: func(v reflect.Value, b codec.Binder) error { return v.Addr().Interface().(bindable).bind(b) },
	Any:    bindAny,
})

// RegisterCodec adds a codec for types with a layout of their own, before the first of
// their values is met; every binary must add the same.
func RegisterCodec(c Codec) error { return types.Add(c) }

// Codec lays out the values of some types; see RegisterCodec.
type Codec = codec.Codec

// CodecHeader describes an encoded value to a Codec.
type CodecHeader = codec.Header

// FirstCodecID is the lowest id that a program's own codec may have.
const FirstCodecID = codec.FirstCustom

// reference is what Ref and ActorRef have in common for the codec.
type reference interface{ objectID() (ids.ObjectID, error) }

// bindable is a pointer to one: bind makes a decoded reference live.
type bindable interface{ bind(b codec.Binder) error }

var typeOfReference = reflect.TypeFor[reference]()

// binder gives decoded references handles of the client that decodes them.
type binder struct{ c *client.Client }

func (b binder) Bind(id ids.ObjectID, tag uint64) (any, error) {
	if b.c == nil {
		return nil, errs.New(errs.CodeNotDecodable, "object %v: a reference was decoded outside any cluster: use the context of a task or of Cluster.Context", id)
	}
	idle.borrowed()
	c := newCell(b.c, b.c.Bind(id), nil)
	if tag == codec.TagActor {
		c.life.room = b.c.KnownRoom(ids.ActorID(id.Task))
	}
	return c, nil
}

// idleCollector collects garbage in a worker process soon after it last borrowed a reference:
// an idle process would otherwise hold other people's objects until its next collection, minutes
// later. A busy one collects anyway.
type idleCollector struct {
	on atomic.Bool

	mu    sync.Mutex
	timer *time.Timer // guarded by mu
}

const idleBefore = 300 * time.Millisecond // a freed object is gone within a second, as Ray's free_objects_period

var idle idleCollector

func (i *idleCollector) borrowed() {
	if !i.on.Load() {
		return
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.timer == nil {
		i.timer = time.AfterFunc(idleBefore, runtime.GC)
	} else {
		i.timer.Reset(idleBefore)
	}
}

func bindAny(id ids.ObjectID, tag uint64, b codec.Binder) (any, error) {
	c, err := b.Bind(id, tag)
	if err != nil {
		return nil, err
	}
	if tag == codec.TagActor {
		return ActorRef[any]{c.(*cell)}, nil
	}
	return Ref[any]{c.(*cell)}, nil
}

// rebind replaces the unbound reference that UnmarshalCBOR left.
func rebind(c **cell, b codec.Binder, tag uint64) error {
	if *c == nil || (*c).life.client != nil {
		return nil
	}
	live, err := b.Bind((*c).life.unbound, tag)
	if err != nil {
		return err
	}
	*c = live.(*cell)
	return nil
}

func unmarshalRef(b []byte, want uint64) (*cell, error) {
	if len(b) == 1 && b[0] == 0xf6 {
		return nil, nil
	}
	id, tag, err := codec.ParseRef(b)
	if err != nil {
		return nil, err
	}
	if tag != want {
		return nil, errs.New(errs.CodeNotDecodable, "object %v: a reference of CBOR tag %d, want %d", id, tag, want)
	}
	return &cell{life: &life{unbound: id}}, nil
}

func marshalRef(r reference, tag uint64) ([]byte, error) {
	id, err := r.objectID()
	if err != nil {
		return nil, err
	}
	if id.IsZero() {
		return []byte{0xf6}, nil
	}
	return codec.AppendRef(nil, id, tag), nil
}

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
