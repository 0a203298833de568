package membership

import (
	"fmt"

	"mobula/remote"
)

// Node is one life of a node, as it says of itself.
type Node struct {
	remote.Life
	Identity  string // of its directory
	Role      Role
	Release   string // of its binary
	Protocol  uint32 // the latest version of the messages between nodes that it speaks
	Addresses Addresses
}

// Addresses are where a node listens: each a host and a port.
type Addresses struct {
	Gossip   string // as the gossip has it: no part of what the node says
	Message  string
	Transfer string
}

// Role is what a node is in its cluster.
type Role uint8

// The roles.
const (
	Data    Role = iota // it runs work
	Control             // it carries the control plane's tables, and runs work
	Driver              // a program's own node: it runs no work unless told, and carries nothing
)

func (r Role) String() string {
	switch r {
	case Data:
		return "data"
	case Control:
		return "control"
	case Driver:
		return "driver"
	}
	return fmt.Sprintf("role %d", uint8(r))
}

// State is what is believed of a life.
type State uint8

// The states. All but the fenced one may be left again.
const (
	Unknown State = iota // heard of, and not described
	Alive
	Suspect // something speaks against it
	Dead    // nothing speaks for it any more
	Left    // it said that it goes
	Over    // the control plane has ended it
)

func (s State) String() string {
	switch s {
	case Unknown:
		return "unknown"
	case Alive:
		return "alive"
	case Suspect:
		return "suspect"
	case Dead:
		return "dead"
	case Left:
		return "left"
	case Over:
		return "over"
	}
	return fmt.Sprintf("state %d", uint8(s))
}

// Reason is why a life is suspected or believed dead.
type Reason uint8

// The reasons.
const (
	NoReason     Reason = iota
	Unheard             // the gossip has given it up
	Disconnected        // the connection for messages broke
	Refused             // nobody listens at its address any more
	Replaced            // a later life of its home has been heard of
)

func (r Reason) String() string {
	switch r {
	case NoReason:
		return "no reason"
	case Unheard:
		return "the gossip has given it up"
	case Disconnected:
		return "its connection broke"
	case Refused:
		return "nobody listens at its address"
	case Replaced:
		return "a later life of its home is there"
	}
	return fmt.Sprintf("reason %d", uint8(r))
}
