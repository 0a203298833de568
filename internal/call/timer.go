package call

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

// Tick is called by a timer, with the timer's actor. It waits for the call that it makes.
type Tick = func(ctx context.Context, self *Cell) error

// StartTimer calls tick when d has passed, once or again and again, until it is stopped or the life of the actor that ctx belongs
// to ends. A tick is skipped if it is due while the one before waits or runs.
func StartTimer(ctx context.Context, d time.Duration, again bool, tick Tick) (stop context.CancelFunc, err error) {
	self, err := Self(ctx)
	if err != nil {
		return nil, err
	}
	tc := client.FromContext(ctx)
	switch {
	case tc.Hosted == nil:
		return nil, errs.New(errs.CodeInvalid, "a timer: the actor has ended")
	case d < 0 || again && d == 0:
		return nil, errs.New(errs.CodeInvalid, "a timer of %v: want more than 0", d)
	}
	// The timer's calls need ids of their own: the call that sets the timer may run again, in another life of the
	// actor.
	own := &client.TaskContext{Client: tc.Client, Task: ids.Derive(tc.NextTask(), 1+uint64(tc.Attempt))}
	life, stop := context.WithCancel(client.WithTask(context.Background(), own))
	own.Own = life // a call that the timer has made still runs after Stop
	if !tc.Client.Go(func() { runTimer(life, stop, tc, d, again, func() error { return tick(life, self) }) }) {
		stop()
		return nil, tc.Client.Err()
	}
	return stop, nil
}

func runTimer(life context.Context, stop context.CancelFunc, tc *client.TaskContext, d time.Duration, again bool, tick func() error) {
	var ended sync.WaitGroup
	defer ended.Wait()
	defer stop()      // before Wait: it ends the goroutine that is waited for
	ended.Go(func() { // so that a tick under way is not waited for
		select {
		case <-tc.Hosted.Life:
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
		if err := tick(); err != nil && life.Err() == nil && !errors.Is(err, errs.ErrActorDied) {
			slog.Default().Warn("the call of an actor's timer failed", "actor", tc.Spec.Actor, "err", err)
		}
		if !again {
			return
		}
	}
}
