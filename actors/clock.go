package actors

import "time"

// Clock is the source of time. The default is package time's, which is virtual inside
// a testing/synctest bubble.
type Clock interface {
	Now() time.Time
	// AfterFunc runs f once after d, never before it has returned. stop tells whether
	// it was in time.
	AfterFunc(d time.Duration, f func()) (stop func() bool)
}

type realClock struct{}

func (realClock) Now() time.Time { return time.Now() }

func (realClock) AfterFunc(d time.Duration, f func()) func() bool {
	return time.AfterFunc(d, f).Stop
}
