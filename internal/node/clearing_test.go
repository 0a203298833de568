package node

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
)

// What is brought for a job that is opened again waits until nothing of its life before, or of two of them, is being removed, or until it is closed once more.
func TestAJobThatIsOpenedAgainWaitsForItsRemoval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newClearing()
		if err := c.wait(t.Context(), 1); err != nil {
			t.Errorf("nothing is removed: %v", err)
		}
		c.begin(1)
		c.begin(1)
		closed, cancel := context.WithCancel(t.Context())
		opened, gaveUp := make(chan error, 1), make(chan error, 1)
		go func() { opened <- c.wait(t.Context(), 1) }()
		go func() { gaveUp <- c.wait(closed, 1) }()
		cancel()
		if err := <-gaveUp; !errors.Is(err, context.Canceled) {
			t.Errorf("it was closed again: %v", err)
		}
		c.end(2)
		c.end(1)
		if synctest.Wait(); len(opened) != 0 {
			t.Error("one life's files are being removed, and another has its own")
		}
		c.end(1)
		if err := <-opened; err != nil {
			t.Error(err)
		}
		c.end(1)
		if err := c.wait(t.Context(), 1); err != nil || len(c.under) != 0 {
			t.Errorf("nothing is removed any more: %v, %v", err, c.under)
		}
	})
}
