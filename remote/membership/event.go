package membership

import (
	"time"

	"mobula/internal/ids"
	"mobula/remote"
)

// Event is what a Core steps on.
type Event interface{ membershipEvent() }

// Seen says that the gossip has a node alive, and what the node says of itself.
type Seen struct{ Node Node }

// Failed says that the gossip has given a life up.
type Failed struct{ Life remote.Life }

// Leaving says that a node has said goodbye.
type Leaving struct{ Life remote.Life }

// Connected says that a connection for messages is in use: remote.Up.
type Connected struct{ Life remote.Life }

// Broken says that no connection for messages is in use any more: remote.Down.
type Broken struct{ Life remote.Life }

// NobodyListens says that the machine of a node refuses connections to it: no process has its port.
type NobodyListens struct{ Life remote.Life }

// Beat is a row that a node has written in the control plane's table, and its number.
type Beat struct {
	Node   Node
	Number uint64
}

// Fenced is the control plane's verdict: the home's lives up to this one are over.
type Fenced struct{ Life remote.Life }

// Clash says that two nodes gossip as the same life, from two addresses.
type Clash struct {
	Life      remote.Life
	Addresses [2]string
}

// Gossiped is another node's load.
type Gossiped struct{ Load Load }

// Report is this node's load. A later report has a higher version.
type Report struct {
	Version uint64
	Bytes   []byte
}

// List asks what is believed; Listed answers it.
type List struct{ ID uint64 }

// Timer says that the time asked for by After has come.
type Timer struct{}

func (Seen) membershipEvent()          {}
func (Failed) membershipEvent()        {}
func (Leaving) membershipEvent()       {}
func (Connected) membershipEvent()     {}
func (Broken) membershipEvent()        {}
func (NobodyListens) membershipEvent() {}
func (Beat) membershipEvent()          {}
func (Fenced) membershipEvent()        {}
func (Clash) membershipEvent()         {}
func (Gossiped) membershipEvent()      {}
func (Report) membershipEvent()        {}
func (List) membershipEvent()          {}
func (Timer) membershipEvent()         {}

// Effect is what a Core asks for.
type Effect interface{ membershipEffect() }

// Notice is an effect for those who follow the membership. A core that begins again says what holds anew.
type Notice interface {
	Effect
	notice()
}

// NodeUp says that a life is alive: a new one, one that was suspected or believed dead, or one that says something else of itself than before.
type NodeUp struct{ Node Node }

// NodeSuspect is a hint that a life may be over.
type NodeSuspect struct {
	Life remote.Life
	Why  Reason
}

// NodeDead is a hint too: nothing speaks for the life any more. It may come back by NodeUp.
type NodeDead struct {
	Life remote.Life
	Why  Reason
}

// NodeLeft says that the node ends in order.
type NodeLeft struct{ Life remote.Life }

// NodeFenced is final: the home's lives up to this one are over.
type NodeFenced struct{ Life remote.Life }

// HomeClash says that two nodes are there with one home, each at its own address. The control plane knows which of them the home is.
type HomeClash struct {
	Home      ids.Home
	Addresses [2]string
}

// LoadReceived is the latest load of a node.
type LoadReceived struct{ Load Load }

// Superseded says that the control plane has ended this node's own life.
type Superseded struct{ Epoch uint64 }

// Accuse asks the control plane to look at a life. It decides; until it has, it is asked again.
type Accuse struct {
	Life remote.Life
	Why  Reason
}

// Spread has this node's load gossiped, in place of the one before.
type Spread struct{ Load Load }

// Listed answers List: by home, one life of each.
type Listed struct {
	ID      uint64
	Members []Member
}

// Member is what is believed of a life.
type Member struct {
	Node  Node
	State State
	Why   Reason
	Since int64
}

// After asks for a Timer; it replaces the one asked for before.
type After struct{ Delay time.Duration }

func (NodeUp) membershipEffect()       {}
func (NodeSuspect) membershipEffect()  {}
func (NodeDead) membershipEffect()     {}
func (NodeLeft) membershipEffect()     {}
func (NodeFenced) membershipEffect()   {}
func (HomeClash) membershipEffect()    {}
func (LoadReceived) membershipEffect() {}
func (Superseded) membershipEffect()   {}
func (Accuse) membershipEffect()       {}
func (Spread) membershipEffect()       {}
func (Listed) membershipEffect()       {}
func (After) membershipEffect()        {}

func (NodeUp) notice()       {}
func (NodeSuspect) notice()  {}
func (NodeDead) notice()     {}
func (NodeLeft) notice()     {}
func (NodeFenced) notice()   {}
func (HomeClash) notice()    {}
func (LoadReceived) notice() {}
func (Superseded) notice()   {}
