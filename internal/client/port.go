package client

import "mobula/wire"

// Port is the way to the node: one ordered stream of messages.
type Port interface {
	// Send hands messages over, in order. It blocks only for backpressure and is safe for
	// concurrent use. The messages are given up; the slice is the caller's again on return.
	// An error means that the connection is gone.
	Send(msgs ...wire.Msg) error
	Close() error
}

// TurnPort is a Port inside the node's process. Whoever is about to wait sends by it: turn,
// where it is not nil, is the node's work on the messages, which the caller does once it
// holds no lock. Nobody is woken for it.
type TurnPort interface {
	Port
	SendTurn(msgs ...wire.Msg) (turn func(), err error)
}
