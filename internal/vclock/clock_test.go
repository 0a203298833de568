package vclock

import (
	"slices"
	"testing"
	"time"
)

func TestWhatIsDueIsDoneInOrder(t *testing.T) {
	var c Clock
	var done []string
	note := func(what string) func() { return func() { done = append(done, what) } }
	c.At(5, note("5"))
	c.After(3*time.Nanosecond, note("3"))
	c.At(5, note("5 again"))
	c.At(3, func() {
		note("3 again")()
		c.At(1, note("late")) // is past
		c.After(10, note("13"))
	})
	if !c.Next() || c.Now() != 3 || !slices.Equal(done, []string{"3"}) {
		t.Errorf("first at %d: %q", c.Now(), done)
	}
	if c.Run(6); c.Now() != 6 || !slices.Equal(done, []string{"3", "3 again", "late", "5", "5 again"}) {
		t.Errorf("until %d: %q", c.Now(), done)
	}
	if !c.Next() || c.Now() != 13 || c.Next() {
		t.Errorf("at %d: %q", c.Now(), done)
	}
}
