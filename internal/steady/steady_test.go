package steady_test

import (
	"testing"
	"time"

	"mobula/internal/steady"
)

func near(t *testing.T, what string, got, want int64) {
	t.Helper()
	if d := time.Duration(got - want); d.Abs() > 100*time.Millisecond {
		t.Errorf("%s: %v apart", what, d)
	}
}

func TestAClockBeginsWithTheWallClocksTimeAndNeverGoesBack(t *testing.T) {
	c := steady.New()
	near(t, "wall", c.Now(), time.Now().UnixNano())
	for last, i := c.Now(), 0; i < 1000; i++ {
		now := c.Now()
		if now < last {
			t.Fatalf("%d after %d", now, last)
		}
		last = now
	}
}

// The wall clock of one process was an hour ahead when it made its clock: the other takes over its time, not the wall's.
func TestAClockByOffsetTellsTheOthersTime(t *testing.T) {
	mine := steady.New()
	ahead := steady.Of(mine.Offset() + int64(time.Hour))
	copied := steady.Of(ahead.Offset())
	near(t, "copy", copied.Now(), mine.Now()+int64(time.Hour))

	in := time.Now().Add(time.Hour)
	near(t, "of an instant", copied.At(in), copied.Now()+int64(time.Hour))
	near(t, "an instant", copied.Time(copied.At(in)).UnixNano(), in.UnixNano())
}
