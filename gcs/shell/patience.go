package shell

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"

	"mobula/gcs"
)

// errAway is wrapped when the tables did not answer. What was asked for may have been done, or not.
var errAway = errors.New("control plane: the tables do not answer")

// In a cluster a call is made again as long as the tables do not answer: when a server is lost, the others elect a leader within some ten seconds.
const (
	patience    = 30 * time.Second
	attemptTime = 2 * time.Second
	pauseTime   = 100 * time.Millisecond
)

// persist makes a call until it is answered, for as long as patience and the context allow. A compare-and-set whose answer was lost then meets what
// it wrote itself, as a conflict; the core reads the row, and finds that out.
func persist(ctx context.Context, call func(context.Context) gcs.Answered) gcs.Answered {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		attempt, done := context.WithTimeout(ctx, attemptTime)
		a := call(attempt)
		done()
		if !errors.Is(a.Err, errAway) {
			return a
		}
		select {
		case <-time.After(pauseTime):
		case <-ctx.Done():
			return a
		}
	}
}

// untilReady makes a call until it succeeds, for as long as ready allows, and the connection is not closed.
func untilReady(ready context.Context, call func() error) error {
	for {
		err := call()
		if err == nil || errors.Is(err, nats.ErrConnectionClosed) {
			return err
		}
		if sleep(ready, pauseTime); ready.Err() != nil {
			return fmt.Errorf("%w; the last attempt: %w", context.Cause(ready), err)
		}
	}
}

// insist is persist for calls of the authority.
func insist(ctx context.Context, call func(context.Context) error) error {
	return persist(ctx, func(ctx context.Context) gcs.Answered { return gcs.Answered{Err: call(ctx)} }).Err
}

// away marks an error of a server as no answer.
func away(err error) error { return fmt.Errorf("%w: %w", errAway, err) }
