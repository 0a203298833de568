package mobula

import (
	"context"

	"mobula/internal/call"
)

// ActorRef names an actor whose instance is a *T. It is small and cheap to copy. It can be an argument of a
// task, as V(ref), and can lie inside values. An actor, named or not, ends when no reference to it is left;
// a detached one lives until it is stopped or killed.
//
// A T that has a method Close() error or Close(context.Context) error has a close hook. It is called once, in the actor's process and
// after its last call, when the actor ends gracefully: by Stop, by the release of its last reference, with its job, or when the node is
// stopped. It has 5 seconds. The error that it returns is logged, and is part of the reason of the actor's death. It is not called after
// Kill, a panic in a call, or a crash of the process or the node: another instance may live already.
type ActorRef[T any] struct{ cell *call.Cell }

// ActorType is any handle that RegisterActor0 to RegisterActor5 give.
type ActorType[T any] interface{ class(*T) *call.Function }

// ID names the actor in lists, traces and errors. It is empty for a reference that names nothing.
func (a ActorRef[T]) ID() string { return a.cell.ActorID() }

// String is ID.
func (a ActorRef[T]) String() string { return a.ID() }

// Ready waits until the actor is constructed; the error says why it could not be. Calls need not wait for it. On a reference of an
// actor to itself Ready returns at once.
func (a ActorRef[T]) Ready(ctx context.Context) error { return a.cell.Constructed(ctx) }

// Stop ends the actor gracefully: calls made before it still run, later ones fail with ErrActorDied, then the close hook is called,
// and Stop returns when the actor has ended. The error is that of the hook, or of ctx; where ctx ends first, the actor still ends
// later. Stop of an actor that has ended gives no error. In a call of the actor itself Stop does not wait: the actor ends after the
// call.
func (a ActorRef[T]) Stop(ctx context.Context) error { return a.cell.Stop(ctx) }

// Kill ends the actor at once. Its running calls fail with ErrActorDied, and its close hook is not called. By default it does not
// come back.
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
// ErrNotFound if no actor has that name, or the one that had it is ending. Nothing checks here that the actor is a T: if it is not, a
// call of a method of T fails with ErrInvalid.
func GetActor[T any](ctx context.Context, namespace, name string) (ActorRef[T], error) {
	c, err := call.FindActor(ctx, namespace, name)
	return ActorRef[T]{c}, err
}

// Self gives a reference to the actor that ctx belongs to, in its constructor and its methods. The actor can pass it to others, or call itself with
// it later. It does not keep the actor alive, even where the actor's state holds it: an actor to which no other reference is left ends. A copy that
// was passed on keeps the actor alive, as any reference does. The error is ErrInvalid outside an actor. Nothing checks that the actor is a T.
func Self[T any](ctx context.Context) (ActorRef[T], error) {
	c, err := call.Self(ctx)
	return ActorRef[T]{c}, err
}
