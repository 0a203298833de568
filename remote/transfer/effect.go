package transfer

import (
	"time"

	"mobula/internal/ids"
)

// Effect is what a Core asks for. Effects of one step are carried out in order.
type Effect interface{ transferEffect() }

// Dial asks for a connection to a node. Connected or DialFailed answers it.
type Dial struct{ Peer ids.Home }

// Close ends a connection; Closed follows. What was written on it before may still arrive.
type Close struct {
	Conn ConnID
	Err  error
}

// Write says something on a connection. What is written on one goes in order; on one that has closed it is lost.
type Write struct {
	Conn  ConnID
	Frame Frame
}

// WriteChunk sends a chunk out of memory that stays as it is until ChunkWritten or Closed. There is one at a time on a connection.
type WriteChunk struct {
	Conn  ConnID
	To    ids.Home
	Chunk Chunk
	// Relay is the fetch in whose memory the chunk has arrived. 0: the chunk is of what the store has served.
	Relay    FetchID
	Unsummed bool // Chunk.Sum is not known: it is to be computed, if the connection has checksums
}

// Expect says that chunks with a token go to the memory of a fetch, in order, the first at an offset.
type Expect struct {
	Conn   ConnID
	Token  uint64
	Fetch  FetchID
	Offset int64
}

// Unexpect ends Expect. No chunk of it is being read.
type Unexpect struct{ Token uint64 }

// Export asks the store to pin an object for another node. Served answers it.
type Export struct {
	To     ids.Home
	Token  uint64
	Object Object
}

// Release gives back what Export has asked for, answered or not.
type Release struct {
	To    ids.Home
	Token uint64
}

// Finish ends fetches of one object. Without an error the memory of the first has all of it; the others' are filled from there. This core uses
// their memory no more.
type Finish struct {
	Fetches []FetchID
	Err     error
}

// After asks for a Timer; it replaces the one asked for before.
type After struct{ Delay time.Duration }

func (Dial) transferEffect()       {}
func (Close) transferEffect()      {}
func (Write) transferEffect()      {}
func (WriteChunk) transferEffect() {}
func (Expect) transferEffect()     {}
func (Unexpect) transferEffect()   {}
func (Export) transferEffect()     {}
func (Release) transferEffect()    {}
func (Finish) transferEffect()     {}
func (After) transferEffect()      {}
