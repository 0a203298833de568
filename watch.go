package mobula

import (
	"context"
	"iter"
	"runtime"

	"mobula/internal/call"
)

// ActorPhase is where an actor stands, as Watch tells.
type ActorPhase uint8

// The phases of an actor.
const (
	ActorStarting   ActorPhase = iota + 1 // it is not constructed yet
	ActorAlive                            // it takes calls
	ActorRestarting                       // its process died; its constructor runs again
	ActorDead                             // for good
)

// String names the phase.
func (s ActorPhase) String() string {
	if s < ActorStarting || s > ActorDead {
		return "unknown"
	}
	return [...]string{"starting", "alive", "restarting", "dead"}[s-1]
}

// ActorEvent is where an actor stands now.
type ActorEvent struct {
	Actor    string // its ID
	Phase    ActorPhase
	Restarts int   // so far
	Err      error // why it restarts, or died: ErrActorDied
}

// Watch tells where an actor stands: what is true at first, then each change, to the last one, its death. Of an actor that is dead already
// it tells that. It works for actors of other jobs that have a name, and over restarts of the node: changes that were missed
// meanwhile are told as what is true then. A watch does not keep the actor alive. It ends after ActorDead, or
// with an error where ctx ends or the connection is lost.
func Watch[T any](ctx context.Context, actor ActorRef[T]) iter.Seq2[ActorEvent, error] {
	events := call.Watch(ctx, actor.cell)
	return func(yield func(ActorEvent, error) bool) {
		for ev, err := range events {
			if !yield(eventOf(ev), err) {
				return
			}
		}
	}
}

// Subscription is what Notify gives.
type Subscription struct{ stop context.CancelFunc }

// Stop ends the subscription. A call that it has made already still runs.
func (s *Subscription) Stop() { s.stop() }

// Notify lets the actor that ctx belongs to, in its constructor or a method, hear where another actor stands: each event that Watch would
// tell is a call of that method of its own, in the order of its other calls and never beside them. It ends after ActorDead, by
// Stop, and with the actor's life in its process; where that starts again its constructor subscribes again. It holds neither of the two. An
// error of the method is logged. The error is ErrInvalid outside an actor.
func Notify[T, R, A any](ctx context.Context, method Method1[T, ActorEvent, R], of ActorRef[A], opts ...CallOption) (*Subscription, error) {
	stop, err := call.Notify(ctx, of.cell, func(ctx context.Context, self *call.Cell, ev call.Event) error {
		_, err := method.Go(ctx, ActorRef[T]{self}, V(eventOf(ev)), opts...).Get(ctx)
		return err
	})
	runtime.KeepAlive(of.cell)
	if err != nil {
		return nil, err
	}
	return &Subscription{stop}, nil
}

func eventOf(ev call.Event) ActorEvent {
	return ActorEvent{Actor: ev.Actor, Phase: ActorPhase(ev.Phase), Restarts: ev.Restarts, Err: ev.Err}
}

// MarshalBinary writes the event, so that it can be an argument.
func (e ActorEvent) MarshalBinary() ([]byte, error) {
	return call.Event{Actor: e.Actor, Phase: uint8(e.Phase), Restarts: e.Restarts, Err: e.Err}.Append(), nil
}

// UnmarshalBinary reads it.
func (e *ActorEvent) UnmarshalBinary(b []byte) error {
	ev, err := call.ParseEvent(b)
	*e = eventOf(ev)
	return err
}
