package mobula

import (
	"context"
	"time"

	"mobula/internal/call"
)

// Timer is what Method.After and Method.Every give to an actor's constructor or method. Its ticks are calls of the actor to itself, in
// order with its other calls and never beside them. A tick is skipped if it is due while the one before waits or runs. A timer ends when
// the actor's life in its process ends: by Stop, by the release of its last reference, or by a crash. If the actor starts again, its
// constructor sets the timer again. A timer does not keep the actor alive. An error of the method is logged.
//
// A constructor that sets a timer uses the handle of a method, whose registration depends on the constructor. Go refuses such a
// cycle between package-level variables, so register that method in a function init.
type Timer struct{ stop context.CancelFunc }

// Stop ends the timer. A call that the timer has made already still runs.
func (t *Timer) Stop() { t.stop() }

// startTimer calls method with the actor that ctx belongs to and waits for the end of the call, once or again
// and again.
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
