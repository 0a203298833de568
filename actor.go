package mobula

import (
	"context"
	"runtime"

	"mobula/internal/client"
	"mobula/internal/codec"
	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/internal/registry"
	"mobula/internal/state"
	"mobula/wire"
)

// ActorRef names an actor whose instance is a *T. It is a small value to copy, can be an
// argument of a task, as V(ref), and lie inside values. An actor ends when no reference to it is left, named
// or not; a detached one lives until it is stopped or killed.
//
// A T that has a method Close() error or Close(context.Context) error has a close hook: it is called once in the process of the
// actor when that ends gracefully, after its last call: by Stop, by the release of its last reference, at the end of its job or of a node
// that is stopped. It has 5 seconds. What it returns is logged, and part of why the actor died. It is not called by Kill, or where the
// process or the node crashed: then another instance may live already.
type ActorRef[T any] struct{ cell *cell }

// ActorType is any handle that RegisterActor0 to RegisterActor5 give.
type ActorType[T any] interface{ class(*T) *function }

// ID names the actor in lists, traces and errors; empty for one that names nothing.
func (a ActorRef[T]) ID() string {
	id, err := a.cell.objectID()
	if err != nil || id.IsZero() {
		return ""
	}
	return id.Task.String()
}

// String is ID.
func (a ActorRef[T]) String() string { return a.ID() }

// Ready waits until the actor was constructed; the error is why it was not. Calls need not wait. An actor does not wait for itself.
func (a ActorRef[T]) Ready(ctx context.Context) error {
	h, err := a.cell.handle()
	if err != nil || a.cell.life.self {
		return err
	}
	c := a.cell.life.client
	d, err := c.Get1(ctx, h)
	if err != nil {
		err = failure(c, err)
	}
	runtime.KeepAlive(a.cell)
	d.Release()
	return err
}

// Stop ends the actor gracefully: the calls that were made before run, later ones fail with ErrActorDied, then its close hook
// is called, and Stop returns when it has ended. The error is that of the hook, or of ctx: then the actor ends all the same, later.
// An actor that has ended is stopped. In a call of the actor itself Stop does not wait: the actor ends after the call.
func (a ActorRef[T]) Stop(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return errs.From(err)
	}
	h, err := a.cell.handle()
	if err != nil {
		return err
	}
	id := ids.ActorID(h.ID().Task)
	if tc := client.FromContext(ctx); tc != nil && tc.Spec != nil && tc.Spec.Kind != wire.TaskNormal && tc.Spec.Actor == id {
		return tc.Client.AskStop(id)
	}
	c := a.cell.life.client
	if err = c.StopActor(ctx, id); err != nil {
		err = failure(c, err)
	}
	runtime.KeepAlive(a.cell)
	return err
}

// Kill ends the actor at once, its running calls too: they fail with ErrActorDied, and its close hook is not called. By default it
// does not come back.
func (a ActorRef[T]) Kill(ctx context.Context, opts ...KillOption) error {
	if err := ctx.Err(); err != nil {
		return errs.From(err)
	}
	h, err := a.cell.handle()
	if err != nil {
		return err
	}
	var o killOptions
	for _, set := range opts {
		set(&o)
	}
	err = a.cell.life.client.KillActor(ids.ActorID(h.ID().Task), o.restart)
	runtime.KeepAlive(a.cell)
	return err
}

// KillOption says how to kill.
type KillOption func(*killOptions)

type killOptions struct{ restart bool }

// WithRestart lets the actor come back as after a crash, within its MaxRestarts.
func WithRestart() KillOption { return func(o *killOptions) { o.restart = true } }

// Release gives the reference up, for all copies of a.
func (a ActorRef[T]) Release() { a.cell.release() }

func (a ActorRef[T]) objectID() (ids.ObjectID, error) { return a.cell.objectID() }

func (a *ActorRef[T]) bind(b codec.Binder) error { return rebind(&a.cell, b, codec.TagActor) }

// MarshalCBOR writes the reference as a tagged id, for the codec.
func (a ActorRef[T]) MarshalCBOR() ([]byte, error) { return marshalRef(a, codec.TagActor) }

// UnmarshalCBOR reads it; the codec then makes it live.
func (a *ActorRef[T]) UnmarshalCBOR(b []byte) (err error) {
	a.cell, err = unmarshalRef(b, codec.TagActor)
	return err
}

// spawn submits an actor's creation. That of an anonymous actor is not waited for; that of a named
// one is, because the name may be taken.
func spawn[T any](k *call) (ActorRef[T], error) {
	if k.err == nil {
		if k.spec.Opts.ActorName == "" && k.tc.Attempt > 1 { // the actor of an attempt before may be ending, or dead
			k.spec.ID = ids.Derive(k.spec.ID, uint64(k.tc.Attempt))
		}
		k.spec.Actor = ids.ActorID(k.spec.ID)
		if o := k.spec.Opts; o.ActorName != "" && o.Namespace == "" {
			own := *o
			own.Namespace = k.tc.Client.Welcome().Namespace
			k.spec.Opts = &own
		}
	}
	hs := k.submit()
	if k.err != nil {
		return ActorRef[T]{}, k.err
	}
	a := ActorRef[T]{newCell(k.tc.Client, hs[0], nil)}
	a.cell.life.room = k.tc.Client.Room(k.spec.Actor, int(k.spec.Opts.MaxPendingCalls))
	if k.spec.Opts.ActorName == "" {
		return a, nil
	}
	d, err := k.tc.Client.Get1(k.ctx, hs[0])
	if err != nil {
		err = failure(k.tc.Client, err)
		a.Release()
		return ActorRef[T]{}, err
	}
	defer d.Release()
	// With GetIfExists the creation may resolve to another actor's id.
	if id, ok := actorID(d.Value); ok && id != k.spec.Actor {
		a.Release()
		found, room, err := lookUp(k.ctx, k.tc.Client, k.spec.Opts.Namespace, k.spec.Opts.ActorName)
		if err != nil || found != id { // it has died meanwhile
			room = nil
		}
		return bindActor[T](k.tc.Client, id, room), nil
	}
	return a, nil
}

// actorID reads the id that a creation resolved to; not ok: nothing, for the actor's own.
func actorID(v wire.Value) (ids.ActorID, bool) {
	id, ok := ids.TaskOf(v.Data)
	return ids.ActorID(id), ok
}

func bindActor[T any](c *client.Client, id ids.ActorID, room *client.Room) ActorRef[T] {
	a := ActorRef[T]{newCell(c, c.Bind(ids.TaskID(id).Return(0)), nil)}
	a.cell.life.room = room
	return a
}

// GetActor finds an actor by its name; an empty namespace is the cluster's own. The error is
// ErrNotFound where there is none. That it is a T is the caller's word: a method of
// another type fails with ErrInvalid.
func GetActor[T any](ctx context.Context, namespace, name string) (ActorRef[T], error) {
	tc, err := taskOf(ctx)
	if err != nil {
		return ActorRef[T]{}, err
	}
	if namespace == "" {
		namespace = tc.Client.Welcome().Namespace
	}
	id, room, err := lookUp(ctx, tc.Client, namespace, name)
	if err != nil {
		return ActorRef[T]{}, err
	}
	return bindActor[T](tc.Client, id, room), nil
}

// lookUp finds an actor by its name, and the room for its calls.
func lookUp(ctx context.Context, c *client.Client, namespace, name string) (ids.ActorID, *client.Room, error) {
	var reply state.ActorReply
	if err := request(ctx, c, state.MethodActorGet, state.ActorRequest{Namespace: namespace, Name: name}, &reply); err != nil {
		return ids.ActorID{}, nil, err
	}
	id, ok := actorID(wire.Value{Data: reply.Actor})
	if !ok {
		return id, nil, errs.New(errs.CodeProtocol, "actor %q: the node answered with an id of %d bytes", name, len(reply.Actor))
	}
	return id, c.Room(id, reply.MaxPendingCalls), nil
}

// on makes the call one of an actor's method. The caller keeps a alive until the spec is sent.
func on[T any](k *call, a ActorRef[T]) {
	if k.err != nil {
		return
	}
	h, err := a.cell.handleOf(k.tc.Client)
	if err != nil {
		k.err = err
		return
	}
	k.spec.Actor = ids.ActorID(h.ID().Task)
	k.room = a.cell.life.room
}

func methodName[T any](actor ActorType[T], name string) string {
	return actor.class(nil).name + "." + name
}

// constructed is the end of a constructor: it has one result, without a value, which
// resolves when the actor is there.
func constructed[T any](name string, self *T, err error) ([]registry.Output, any, error) {
	if err == nil && self == nil {
		err = errs.New(errs.CodeInvalid, "%s: the constructor returned a nil actor and no error", name)
	}
	if err != nil {
		return nil, nil, err
	}
	return make([]registry.Output, 1), self, nil
}
