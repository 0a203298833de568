package trusttest

import (
	"sync"
	"time"
)

// Clock is a machine's two clocks: the wall clock, which a test can set, and one that nobody sets.
type Clock struct {
	mu     sync.Mutex
	wall   time.Time     // guarded by mu
	steady time.Duration // guarded by mu
}

// Began is when each Clock begins.
var Began = time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)

// NewClock makes a clock.
func NewClock() *Clock { return &Clock{wall: Began} }

// Wall is the time of the wall clock.
func (c *Clock) Wall() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.wall
}

// Steady is the time of the other clock.
func (c *Clock) Steady() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return int64(c.steady)
}

// Pass lets time pass.
func (c *Clock) Pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.wall, c.steady = c.wall.Add(d), c.steady+d
}

// Set sets the wall clock that much ahead.
func (c *Clock) Set(ahead time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.wall = c.wall.Add(ahead)
}
