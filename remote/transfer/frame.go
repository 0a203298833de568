package transfer

import "mobula/internal/ids"

// Frame is what is said on a connection. The node that has dialed says Pull and Credit, the other one the rest.
type Frame interface{ frame() }

// Pull asks for an object from an offset on, a multiple of ChunkSize.
type Pull struct {
	Token  uint64 // of whoever asks; never used again
	Object Object
	Size   int64
	Offset int64
	Limit  int64 // how far the holder may send
	More   bool  // only a node that has more is to send it: others wait for whoever asks, or may
	Must   bool  // no other node is left to ask: the holder may be busy, and is to send it all the same
}

// Credit says how far the holder may send from now on.
type Credit struct {
	Token uint64
	Limit int64
}

// Chunk precedes the Size bytes of an object that lie at an offset.
type Chunk struct {
	Token  uint64
	Offset int64
	Size   int
	Sum    uint32 // CRC-32C; 0 on a connection without checksums
}

// Alive says that there is nothing to send yet.
type Alive struct{}

// Refused ends a pull.
type Refused struct {
	Token  uint64
	Reason Reason
	Others []ids.Home // nodes that have a part of the object, or soon will
}

// Reason is why a pull is refused.
type Reason uint8

// The reasons.
const (
	Missing Reason = iota + 1 // the node has no intact copy
	Busy                      // it sends the object to others already, who can pass it on
	Behind                    // it has less of it than the receiver
	Failed                    // it could not be read
)

// String says it in words.
func (r Reason) String() string {
	switch r {
	case Missing:
		return "it has no intact copy"
	case Busy:
		return "it is busy with others"
	case Behind:
		return "it has less than there is here"
	default:
		return "it could not read it"
	}
}

func (Pull) frame()    {}
func (Credit) frame()  {}
func (Chunk) frame()   {}
func (Alive) frame()   {}
func (Refused) frame() {}
