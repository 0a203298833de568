package steady

import (
	"time"

	"golang.org/x/sys/unix"
)

// Clock tells the time. It may be copied and used by many goroutines at once; the zero value is not ready.
type Clock struct {
	base  int64     // its time when it was made
	began time.Time // the moment when it was made, with a monotonic reading
}

// New makes a clock that begins with the time of the wall clock.
func New() Clock {
	now := time.Now()
	return Clock{base: now.UnixNano(), began: now}
}

// Of makes the clock of another process of this machine from its Offset. With 0 it is the wall clock, for a process that uses that.
func Of(offset int64) Clock {
	if offset == 0 {
		return New()
	}
	return Clock{base: monotonic() + offset, began: time.Now()}
}

// Now is the time in nanoseconds. It never goes back.
func (c Clock) Now() int64 { return c.base + int64(time.Since(c.began)) }

// Offset is how far the clock is ahead of the machine's CLOCK_MONOTONIC, in nanoseconds. It is never 0.
func (c Clock) Offset() int64 { return max(1, c.Now()-monotonic()) }

// At is the clock's time of an instant t, which time.Now gave, or which was derived from it by Add. It is as far
// from the clock's now as t is from time.Now, even if the wall clock was set meanwhile.
func (c Clock) At(t time.Time) int64 { return c.Now() + int64(time.Until(t)) }

// Time is the instant of a time of the clock, with a monotonic reading.
func (c Clock) Time(at int64) time.Time { return time.Now().Add(time.Duration(at - c.Now())) }

// monotonic is CLOCK_MONOTONIC, which all processes of a machine share and nobody can set.
func monotonic() int64 {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
		panic(err) // no kernel is without it
	}
	return ts.Nano()
}
