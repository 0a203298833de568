package mobula

import (
	"context"

	"mobula/internal/call"
)

// ActorRef names an actor whose instance is a *T. It is a small value to copy, can be an
// argument of a task, as V(ref), and lie inside values. An actor ends when no reference to it is left, named
// or not; a detached one lives until it is stopped or killed.
//
// A T that has a method Close() error or Close(context.Context) error has a close hook: it is called once in the process of the
// actor when that ends gracefully, after its last call: by Stop, by the release of its last reference, at the end of its job or of a node
// that is stopped. It has 5 seconds. What it returns is logged, and part of why the actor died. It is not called by Kill, or where the
// process or the node crashed: then another instance may live already.
type ActorRef[T any] struct{ cell *call.Cell }

// ActorType is any handle that RegisterActor0 to RegisterActor5 give.
type ActorType[T any] interface{ class(*T) *call.Function }

// ID names the actor in lists, traces and errors; empty for one that names nothing.
func (a ActorRef[T]) ID() string { return a.cell.ActorID() }

// String is ID.
func (a ActorRef[T]) String() string { return a.ID() }

// Ready waits until the actor was constructed; the error is why it was not. Calls need not wait. An actor does not wait for itself.
func (a ActorRef[T]) Ready(ctx context.Context) error { return a.cell.Constructed(ctx) }

// Stop ends the actor gracefully: the calls that were made before run, later ones fail with ErrActorDied, then its close hook
// is called, and Stop returns when it has ended. The error is that of the hook, or of ctx: then the actor ends all the same, later.
// An actor that has ended is stopped. In a call of the actor itself Stop does not wait: the actor ends after the call.
func (a ActorRef[T]) Stop(ctx context.Context) error { return a.cell.Stop(ctx) }

// Kill ends the actor at once, its running calls too: they fail with ErrActorDied, and its close hook is not called. By default it
// does not come back.
func (a ActorRef[T]) Kill(ctx context.Context, opts ...KillOption) error {
	var o killOptions
	for _, set := range opts {
		set(&o)
	}
	return a.cell.Kill(ctx, o.restart)
}

// KillOption says how to kill.
type KillOption func(*killOptions)

type killOptions struct{ restart bool }

// WithRestart lets the actor come back as after a crash, within its MaxRestarts.
func WithRestart() KillOption { return func(o *killOptions) { o.restart = true } }

// Release gives the reference up, for all copies of a.
func (a ActorRef[T]) Release() { a.cell.Release() }

// MarshalCBOR writes the reference as a tagged id, for the codec.
func (a ActorRef[T]) MarshalCBOR() ([]byte, error) { return a.cell.Marshal(true) }

// UnmarshalCBOR reads it; the codec then makes it live.
func (a *ActorRef[T]) UnmarshalCBOR(b []byte) (err error) {
	a.cell, err = call.UnmarshalRef(b, true)
	return err
}

// GetActor finds an actor by its name; an empty namespace is the cluster's own. The error is
// ErrNotFound where there is none. That it is a T is the caller's word: a method of
// another type fails with ErrInvalid.
func GetActor[T any](ctx context.Context, namespace, name string) (ActorRef[T], error) {
	c, err := call.FindActor(ctx, namespace, name)
	return ActorRef[T]{c}, err
}

// Self is the actor that ctx belongs to, in its constructor and its methods: to be passed to others, and to call oneself later. It does
// not keep the actor alive, also where it is kept in the actor's own state: an actor to which no other reference is left ends. What it is passed to
// holds the actor as any reference does. The error is ErrInvalid outside an actor. That it is a T is the caller's word.
func Self[T any](ctx context.Context) (ActorRef[T], error) {
	c, err := call.Self(ctx)
	return ActorRef[T]{c}, err
}
