package remote

import (
	"errors"
	"time"

	"mobula/internal/ids"
)

// Why a connection is closed.
var (
	ErrOtherNode = errors.New("remote: another node is at the end of the connection")
	ErrStaleLife = errors.New("remote: the node at the end of the connection is of a life that has ended")
	ErrGap       = errors.New("remote: a message was left out")
	ErrSilent    = errors.New("remote: the other node does not acknowledge what it is sent")
	ErrReplaced  = errors.New("remote: another connection to the node is in use")
	ErrHandshake = errors.New("remote: the other node does not say who it is")
)

// Life is a node during one of its lives.
type Life struct {
	Home  ids.Home
	Epoch uint64 // of the control plane, from 1; grows with each life
}

// ConnID numbers this node's connections with one other node. No number is used twice.
type ConnID uint64

// Hello is the first thing that each side says on a connection.
type Hello struct {
	From Life
	To   ids.Home
	// Knows is the life of To from which From has taken messages, 0: none. Got is the number of the last.
	Knows uint64
	Got   uint64
}

// Event is what a Peer steps on.
type Event interface{ peerEvent() }

// Send has a message delivered to the other node. The peer keeps Payload until it is acknowledged. To is the epoch of the life that it is for, 0: whichever
// there is. One for a life that has ended is dropped: Restarted or Gone is on its way to whoever sends it.
type Send struct {
	Payload []byte
	To      uint64
}

// Connected is a connection on which nothing was said yet: one that Dial asked for, or one that the other node has made.
type Connected struct {
	Conn   ConnID
	Dialed bool
}

// DialFailed answers Dial.
type DialFailed struct{ Err error }

// Closed is the end of a connection, once for each that was Connected.
type Closed struct {
	Conn ConnID
	Err  error
}

// HelloReceived is what the other node says of itself.
type HelloReceived struct {
	Conn  ConnID
	Hello Hello
}

// UseReceived says that the node with the lower home uses this connection.
type UseReceived struct{ Conn ConnID }

// Received is a message of the other node.
type Received struct {
	Conn    ConnID
	Number  uint64
	Payload []byte
}

// AckReceived says that the other node has taken all messages up to a number.
type AckReceived struct {
	Conn   ConnID
	Number uint64
}

// Busy says that this node takes nothing from a connection for a while, though it lives: what came before is still handled, or a large message
// comes. The other node is told, and its acknowledgements are not waited for meanwhile.
type Busy struct{ Conn ConnID }

// Timer says that the time asked for by After has come.
type Timer struct{}

// Fence says that the control plane has declared the other node's lives up to Epoch dead.
type Fence struct{ Epoch uint64 }

func (Send) peerEvent()          {}
func (Connected) peerEvent()     {}
func (DialFailed) peerEvent()    {}
func (Closed) peerEvent()        {}
func (HelloReceived) peerEvent() {}
func (UseReceived) peerEvent()   {}
func (Received) peerEvent()      {}
func (AckReceived) peerEvent()   {}
func (Busy) peerEvent()          {}
func (Timer) peerEvent()         {}
func (Fence) peerEvent()         {}

// Effect is what a Peer asks for. Write, WriteAck and Deliver, of which there are many, come as pointers.
type Effect interface{ peerEffect() }

// Notice is an effect that is news for those who talk with the other node: Up, Down, Refused, Restarted, Gone or Superseded. They are in order with
// what is delivered.
type Notice interface {
	Effect
	peerNotice()
}

// Dial asks for a connection to the other node. Connected or DialFailed answers it.
type Dial struct{}

// Close ends a connection. What was written on it before may still arrive.
type Close struct {
	Conn ConnID
	Err  error
}

// WriteHello says who this node is. What is written on a connection goes in order; on one that has closed it is lost.
type WriteHello struct {
	Conn  ConnID
	Hello Hello
}

// WriteUse says that the connection is in use.
type WriteUse struct{ Conn ConnID }

// Write writes a message.
type Write struct {
	Conn    ConnID
	Number  uint64
	Payload []byte
}

// WriteAck acknowledges all messages up to a number.
type WriteAck struct {
	Conn   ConnID
	Number uint64
}

// Deliver hands over a message of the other node: each once, in the order in which it was sent.
type Deliver struct {
	From    Life
	Payload []byte
}

// Up says that a connection is in use.
type Up struct{ Peer Life }

// Down says that no connection is in use any more: a hint that the other node may be dead, and no more than that.
type Down struct {
	Peer Life
	Err  error
}

// Full asks senders to wait.
type Full struct{}

// Room lets them go on.
type Room struct{}

// Refused gives a message back: more than Config.Limit bytes wait for the other node.
type Refused struct {
	Payload []byte
	Err     error
}

// Restarted says that the other node has begun another life. Dropped messages were not acknowledged by the life before.
type Restarted struct {
	Was, Is Life
	Dropped int
}

// Gone says that the other node's life was declared dead. Dropped messages were not acknowledged.
type Gone struct {
	Was     Life
	Dropped int
}

// Superseded says that the other node has heard of a later life of this node: this one is over.
type Superseded struct{ Epoch uint64 }

// After asks for a Timer; it replaces the one asked for before.
type After struct{ Delay time.Duration }

func (Dial) peerEffect()       {}
func (Close) peerEffect()      {}
func (WriteHello) peerEffect() {}
func (WriteUse) peerEffect()   {}
func (Write) peerEffect()      {}
func (WriteAck) peerEffect()   {}
func (Deliver) peerEffect()    {}
func (Up) peerEffect()         {}
func (Down) peerEffect()       {}
func (Full) peerEffect()       {}
func (Room) peerEffect()       {}
func (Refused) peerEffect()    {}
func (Restarted) peerEffect()  {}
func (Gone) peerEffect()       {}
func (Superseded) peerEffect() {}
func (After) peerEffect()      {}

func (Up) peerNotice()         {}
func (Down) peerNotice()       {}
func (Refused) peerNotice()    {}
func (Restarted) peerNotice()  {}
func (Gone) peerNotice()       {}
func (Superseded) peerNotice() {}
