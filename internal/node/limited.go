package node

import (
	"time"
)

func (l *limited) warn(msg string, args ...any) {
	l.mu.Lock()
	if l.last == nil {
		l.last, l.left = make(map[string]time.Time), make(map[string]int)
	}
	now := time.Now()
	if now.Sub(l.last[msg]) < l.every {
		l.left[msg]++
		l.mu.Unlock()
		return
	}
	left := l.left[msg]
	l.last[msg], l.left[msg] = now, 0
	l.mu.Unlock()
	if left > 0 {
		args = append(args, "left_out", left)
	}
	l.log.Warn(msg, args...)
}
