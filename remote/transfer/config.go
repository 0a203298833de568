package transfer

import (
	"time"

	"mobula/internal/ids"
)

// Protocol names this protocol and its version, for the TLS handshake.
const Protocol = "mobula-bulk/1"

// ChunkSize is how much of an object is sent, checked and acknowledged at once. It is part of the protocol: whoever passes a chunk on
// passes its checksum on.
const ChunkSize = 1 << 20

// Config is what a Core is told. All fields must be set; DefaultConfig sets all but Self.
type Config struct {
	Self  ids.Home
	First uint64 // pulls are numbered from here on; no two lives of a node use the same numbers

	Window    int64 // how far a holder may be ahead of what has arrived
	PeerBytes int64 // under way from one node
	AllBytes  int64 // under way from all
	PeerPulls int   // of one node that are served at once; a node of this build has no more under way, by PeerBytes (leastShare)
	Conns     int   // to one node; more than one is of use where one core encrypts less than the network carries
	Small     int64 // an object up to this size is sent to whoever asks, a larger one to one node at a time

	Tries    int           // failures of one holder in a row, without a byte, until it is given up
	RetryMin time.Duration // before a holder that has failed is asked again, doubled with each failure
	Alive    time.Duration // a holder that has nothing to send says so as often
	Silence  time.Duration // nothing was heard on a connection: it is closed
	Stall    time.Duration // a pull has brought nothing, or a receiver has taken nothing: it is given up
	Linger   time.Duration // how long the end of a fetch waits for chunks that are being passed on
	Idle     time.Duration // a connection without pulls is closed
}

// DefaultConfig is for nodes of one data centre.
func DefaultConfig(self ids.Home) Config {
	return Config{
		Self: self, First: 1,
		Window: 8 * ChunkSize, PeerBytes: 32 * ChunkSize, AllBytes: 128 * ChunkSize, PeerPulls: 32 << 10, Conns: 1, Small: 4 * ChunkSize,
		Tries: 3, RetryMin: 50 * time.Millisecond, Alive: time.Second, Silence: 3 * time.Second, Stall: time.Minute,
		Linger: 200 * time.Millisecond, Idle: time.Minute,
	}
}
