package owner

import (
	"errors"
	"runtime"
	"strings"
	"testing"

	"mobula/internal/errs"
	"mobula/wire"
)

// A task that announces a million returns is refused where their records do not fit the budget, at the cost of its message; whichever
// return is asked for says why. What fits is counted, for as long as it is there.
func TestAnnouncedReturnsAreHeldToTheBudget(t *testing.T) {
	s := newScript(t, Config{InlineBudget: 6 << 20})
	s.trust = true // what is measured is the core
	many := &wire.TaskOptions{Func: "many", NumReturns: 1 << 20}
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	spec := s.submit(many)
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; n > 1<<20 {
		t.Errorf("a message that announces %d returns costs %d bytes", many.NumReturns, n)
	}
	for _, i := range []int{0, 1, 1 << 19} {
		s.from(driver, &wire.Get{ID: spec.ID.Return(i), Fetch: true})
		r := sent[*wire.Resolved](s, driver)
		if len(r) != 1 || !errors.Is(r[0].Result.Err, errs.ErrInvalid) || !strings.Contains(r[0].Result.Err.Error(), "1048576 returns") {
			t.Fatalf("return %d: %+v", i, r)
		}
	}
	if many.NumReturns != 1<<20 {
		t.Error("the options were changed")
	}
	s.trust = false
	fits := s.submit(&wire.TaskOptions{Func: "many", NumReturns: 2000})
	if s.c.budget.returns != 1999*returnCost {
		t.Errorf("%d bytes are counted", s.c.budget.returns)
	}
	s.from(driver, &wire.Cancel{Task: fits.ID})
	gone := &wire.Release{}
	for i := range 2000 {
		gone.IDs = append(gone.IDs, fits.ID.Return(i))
	}
	s.from(driver, gone)
	if s.c.budget.returns != 0 {
		t.Errorf("%d bytes are counted of what is gone", s.c.budget.returns)
	}
}
