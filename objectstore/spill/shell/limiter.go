package shell

import "time"

// limiter lets one log line through per interval, and counts the others.
type limiter struct {
	every   time.Duration
	last    time.Time
	skipped int
}

// allow tells whether to log now, and how many lines were skipped before.
func (l *limiter) allow(now time.Time) (skipped int, ok bool) {
	if !l.last.IsZero() && now.Sub(l.last) < l.every {
		l.skipped++
		return 0, false
	}
	skipped, l.skipped, l.last = l.skipped, 0, now
	return skipped, true
}
