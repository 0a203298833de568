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

// Memory finds the bytes of an extent. objectstore.Mapping implements it.
type Memory interface {
	// Map gives the extent's bytes: mapped read-only, or writable for an extent that was
	// granted to this client and is not sealed. Its length and capacity are e.Size.
	Map(e wire.Extent, write bool) ([]byte, error)
}
