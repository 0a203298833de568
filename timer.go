package mobula

import (
	"context"
	"time"

	"mobula/internal/call"
)

// Timer is what Method.After and Method.Every give to an actor's constructor or method: calls of the actor to itself, in the order of its
// other calls, never beside them. A tick that is due while the one before waits or runs is left out. A timer ends with the
// actor's life in its process, by Stop, by its last reference's release, or a crash; where the actor starts again its constructor sets
// it again. It does not keep the actor alive. An error of the method is logged.
//
// A constructor that sets a timer uses the handle of a method, which depends on the constructor: Go refuses that among values of
// package-level variables, so register that method in a function init.
type Timer struct{ stop context.CancelFunc }

// Stop ends the timer. A call that it has made already still runs.
func (t *Timer) Stop() { t.stop() }

// startTimer calls method, with the actor that ctx belongs to, and waits for its end, once or again and again.
func startTimer[T, R any](ctx context.Context, wait time.Duration, again bool, method func(context.Context, ActorRef[T]) Ref[R]) (*Timer, error) {
	stop, err := call.StartTimer(ctx, wait, again, func(ctx context.Context, self *call.Cell) error {
		_, err := method(ctx, ActorRef[T]{self}).Get(ctx)
		return err
	})
	if err != nil {
		return nil, err
	}
	return &Timer{stop}, nil
}
