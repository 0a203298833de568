package node

import (
	"errors"
	"fmt"
	"log/slog"
	"testing"

	"mobula/actors"
	"mobula/internal/errs"
	"mobula/internal/testkit"
)

// A component that has failed for good ends its node: whoever runs it is asked to, also where he begins to listen later, and whoever waits is told why.
func TestAComponentThatHasFailedEndsItsNode(t *testing.T) {
	n, c := running(t, Config{Logger: slog.New(slog.DiscardHandler)}, Telemetry{})
	if err := n.Failed(); err != nil {
		t.Errorf("it has failed: %v", err)
	}
	broken := errors.New("the log is damaged")
	n.component(actors.Event{Kind: actors.EventFailed, Err: fmt.Errorf("root/raylet: %w: %w", errs.ErrComponentFailed, broken)})
	ctx := testkit.Within(t)
	select {
	case <-n.StopRequested():
	case <-ctx.Done():
		t.Fatal("nobody is asked to end the node")
	}
	if err := n.Failed(); !errors.Is(err, errs.ErrComponentFailed) {
		t.Errorf("the node says %v", err)
	}
	testkit.Eventually(t, "the driver is told", func() bool { return errors.Is(c.Err(), errs.ErrComponentFailed) })
}
