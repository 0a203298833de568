package owner

import (
	"testing"
	"time"

	"mobula/internal/errs"
	"mobula/wire"
)

// A stream of more items than there may be fails, and who makes them is told to end, at last by the end of its process.
func TestAStreamWithoutEndIsEnded(t *testing.T) {
	s := newScript(t, Config{CancelGrace: time.Second})
	spec := s.submit(&wire.TaskOptions{Func: "endless", NumReturns: wire.Streaming})
	s.grant(worker)
	x := s.executed(worker)
	s.from(worker, &wire.StreamItem{Task: spec.ID, Attempt: x.Attempt, Index: maxReturns, Result: inline("")})
	if got := sent[*wire.CancelTask](s, worker); len(got) != 1 {
		t.Errorf("the worker is told %d times to end it", len(got))
	}
	s.pass(2 * time.Second)
	if got := sent[*wire.CancelTask](s, worker); len(got) != 1 || !got[0].Abandon {
		t.Errorf("after the grace the worker is told %v", got)
	}
	s.from(driver, &wire.StreamNext{Task: spec.ID})
	if got := sent[*wire.StreamItem](s, driver); len(got) != 1 || got[0].Result.Err == nil || got[0].Result.Err.Code != errs.CodeInvalid {
		t.Errorf("its reader hears %v", got)
	}
}
