package client

import "mobula/wire"

// Port is the way to the node: one ordered stream of messages.
type Port interface {
	// Send hands messages over, in order. It blocks only for backpressure and is safe for
	// concurrent use. The port owns the messages from then on; the slice is the caller's again on return. An error
	// means that the connection is gone.
	Send(msgs ...wire.Msg) error
	Close() error
}

// TurnPort is a Port inside the node's process. A goroutine that is about to wait sends with it. turn, if not nil,
// is the node's work on the messages; the caller does that work once it holds no lock, so nobody is woken for it.
type TurnPort interface {
	Port
	SendTurn(msgs ...wire.Msg) (turn func(), err error)
}
