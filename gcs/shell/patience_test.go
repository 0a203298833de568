package shell

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go"
)

// A table whose servers have yet to elect a leader is asked for again, as long as the start may take.
func TestAStartWaitsForALeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ready, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		none := errors.New("no leader")
		led := time.Now().Add(10 * time.Second)
		if err := untilReady(ready, func() error {
			if time.Now().Before(led) {
				return none
			}
			return nil
		}); err != nil {
			t.Error(err)
		}
		err := untilReady(ready, func() error { return none })
		if !errors.Is(err, none) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("at the end of its time it gives %v", err)
		}
		calls := 0
		err = untilReady(t.Context(), func() error { calls++; return nats.ErrConnectionClosed })
		if !errors.Is(err, nats.ErrConnectionClosed) || calls != 1 {
			t.Errorf("on a closed connection it gives %v, after %d calls", err, calls)
		}
	})
}
