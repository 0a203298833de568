package mobula

import (
	"context"
	"iter"
	"runtime"

	"mobula/internal/call"
)

// ActorPhase is the state of an actor, as Watch tells it.
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

// ActorEvent is the present state of an actor.
type ActorEvent struct {
	Actor    string // its ID
	Phase    ActorPhase
	Restarts int   // so far
	Err      error // why it restarts, or died: ErrActorDied
}

// Watch tells the state of an actor: first the present one, then each change, up to its death. Of a dead actor it tells only that. It
// works for named actors of other jobs too, and across restarts of the node: in place of changes that were missed, it tells the state
// after them. A watch does not keep the actor alive. It ends after ActorDead, or with an error if ctx ends or the connection is lost.
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

// Subscription is a running Notify.
type Subscription struct{ stop context.CancelFunc }

// Stop ends the subscription. A call that the subscription has made already still runs.
func (s *Subscription) Stop() { s.stop() }

// Notify tells the actor that ctx belongs to each change of another actor's state; a constructor or a method calls it. Each event that
// Watch would tell becomes a call of the given method of the actor itself, in order with its other calls and never beside them. The
// subscription ends after ActorDead, by Stop, or with the actor's life in its process; if the actor starts again, its constructor
// subscribes again. It keeps neither actor alive. An error of the method is logged. Notify gives ErrInvalid outside an actor.
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
