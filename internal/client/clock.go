package client

import (
	"sync/atomic"
	"time"

	"mobula/internal/steady"
	"mobula/wire"
)

// clock is the node's clock.
type clock struct{ of atomic.Pointer[steady.Clock] }

// Now is the time by the node's clock, in nanoseconds. Deadlines and the times of attempts are by this clock.
func (k *clock) Now() int64 { return k.of.Load().Now() }

// At is the time of an instant by the node's clock: as far from Now as t is from time.Now.
func (k *clock) At(t time.Time) int64 { return k.of.Load().At(t) }

// Instant is the time at which the node's clock shows at.
func (k *clock) Instant(at int64) time.Time { return k.of.Load().Time(at) }

// set takes over the clock of the node that sent the Welcome. A node before 0.4 has the wall clock.
func (k *clock) set(w *wire.Welcome) {
	clock := steady.Of(w.Clock)
	k.of.Store(&clock)
}
