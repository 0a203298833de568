package mobula

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"mobula/internal/client"
	"mobula/internal/errs"
	"mobula/internal/ids"
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

// startTimer calls tick, and waits for its end, once or again and again.
func startTimer[T any](ctx context.Context, d time.Duration, again bool, tick func(context.Context, ActorRef[T]) error) (*Timer, error) {
	self, err := Self[T](ctx)
	if err != nil {
		return nil, err
	}
	tc := client.FromContext(ctx)
	switch {
	case tc.Life == nil:
		return nil, errs.New(errs.CodeInvalid, "a timer: the actor has ended")
	case d < 0 || again && d == 0:
		return nil, errs.New(errs.CodeInvalid, "a timer of %v: want more than 0", d)
	}
	// Its calls have ids of their own: the same call may run again, in another life of the actor.
	own := &client.TaskContext{Client: tc.Client, Task: ids.Derive(tc.NextTask(), 1+uint64(tc.Attempt))}
	life, stop := context.WithCancel(client.WithTask(context.Background(), own))
	own.Own = life // a call that it has made still runs when it is stopped
	if !tc.Client.Go(func() { runTimer(life, stop, tc, d, again, func() error { return tick(life, self) }) }) {
		stop()
		return nil, tc.Client.Err()
	}
	return &Timer{stop}, nil
}

func runTimer(life context.Context, stop context.CancelFunc, tc *client.TaskContext, d time.Duration, again bool, tick func() error) {
	defer stop()
	var ended sync.WaitGroup
	defer ended.Wait()
	ended.Go(func() { // so that a tick under way is not waited for
		select {
		case <-tc.Life:
		case <-tc.Client.Done():
		case <-life.Done():
		}
		stop()
	})
	due := time.NewTicker(max(d, 1))
	defer due.Stop()
	for {
		select {
		case <-life.Done():
			return
		case <-due.C:
		}
		if err := tick(); err != nil && life.Err() == nil && !errors.Is(err, ErrActorDied) {
			slog.Default().Warn("the call of an actor's timer failed", "actor", tc.Spec.Actor, "err", err)
		}
		if !again {
			return
		}
	}
}
