package call

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"mobula/internal/client"
)

// A timer that called once leaves no goroutine behind, although its actor lives on.
func TestATimerThatHasCalledEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		actor := make(chan struct{}) // closed when its life ends
		tc := &client.TaskContext{Client: client.FromContext(driver(t)).Client, Hosted: &client.Hosted{Life: actor}}
		life, stop := context.WithCancel(t.Context())
		calls, over := 0, make(chan struct{})
		go func() {
			defer close(over)
			runTimer(life, stop, tc, time.Minute, false, func() error { calls++; return nil })
		}()
		time.Sleep(time.Hour)
		synctest.Wait()
		select {
		case <-over:
		default:
			t.Error("it goes on after its only call")
		}
		if calls != 1 {
			t.Errorf("it made %d calls, not 1", calls)
		}
		close(actor)
		<-over
	})
}
