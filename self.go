package mobula

import (
	"context"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/wire"
)

// Self is the actor that ctx belongs to, in its constructor and its methods: to be passed to others, and to call oneself later. It does
// not keep the actor alive, also where it is kept in the actor's own state: an actor to which no other reference is left ends. What it is passed to
// holds the actor as any reference does. The error is ErrInvalid outside an actor. That it is a T is the caller's word.
func Self[T any](ctx context.Context) (ActorRef[T], error) {
	tc, err := taskOf(ctx)
	if err != nil {
		return ActorRef[T]{}, err
	}
	if tc.Spec == nil || tc.Spec.Kind == wire.TaskNormal {
		return ActorRef[T]{}, errs.New(errs.CodeInvalid, "Self: the context belongs to no actor's call or constructor")
	}
	id := ids.TaskID(tc.Spec.Actor)
	if tc.Spec.Kind == wire.TaskActorCreate {
		id = tc.Spec.ID
	}
	l := &loneLife{life: life{client: tc.Client, self: true}}
	l.held = l.slot[:]
	l.held[0].Store(tc.Client.Weak(id.Return(0)))
	return ActorRef[T]{&cell{life: &l.life}}, nil
}
