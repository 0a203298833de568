package actors

import (
	"time"

	"mobula/internal/steady"
)

// Clock is the source of time. The default is that of package steady, which is virtual inside
// a testing/synctest bubble.
type Clock interface {
	// Now is in nanoseconds and never goes back, even if the wall clock is set.
	Now() int64
	// AfterFunc runs f once after d, never before AfterFunc has returned. stop tells whether it prevented the
	// call.
	AfterFunc(d time.Duration, f func()) (stop func() bool)
}

// RealClock is a steady clock with the timers of package time.
func RealClock(c steady.Clock) Clock { return realClock{c} }

type realClock struct{ steady.Clock }

func (realClock) AfterFunc(d time.Duration, f func()) func() bool {
	return time.AfterFunc(d, f).Stop
}
