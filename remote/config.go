package remote

import (
	"time"

	"mobula/internal/ids"
)

// Config is what a Peer is told. All fields but Random must be set; DefaultConfig sets all but the nodes.
type Config struct {
	Self Life
	Peer ids.Home

	High  int64 // bytes not acknowledged at which senders are to wait
	Low   int64 // at which they may go on
	Limit int64 // beyond which a message is refused

	AckBytes int64         // taken and not acknowledged: an Ack at once
	AckDelay time.Duration // an Ack at the latest, if no message takes it along

	Handshake time.Duration // within which the other node says who it is and which connection is in use
	Silence   time.Duration // without an Ack, while some are due: another connection is tried
	RetryMin  time.Duration // between two dials, doubled with each that fails; short: a process that is being ended accepts for some milliseconds still, and that its port is closed is how its end is known
	RetryMax  time.Duration

	// Random gives a number in [0, n): dials of many nodes are not to fall together. nil: no jitter.
	Random func(n int64) int64
}

// DefaultConfig is for nodes of one data centre. The time-outs are below the 8 s of a node's lease in the control plane.
func DefaultConfig(self Life, peer ids.Home) Config {
	return Config{
		Self: self, Peer: peer,
		High: 8 << 20, Low: 4 << 20, Limit: 64 << 20,
		AckBytes: 256 << 10, AckDelay: 10 * time.Millisecond,
		Handshake: 5 * time.Second, Silence: 5 * time.Second,
		RetryMin: 2 * time.Millisecond, RetryMax: 2 * time.Second,
	}
}
