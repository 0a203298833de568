package shell

import (
	"context"
	"crypto/tls"
	"net"
)

// ALPN is the name of the protocol of messages between nodes, by which a port that is shared with others tells it apart.
const ALPN = "mobula-msg/1"

// Transport makes connections between nodes. Memory and TCP are the two there are; what a Hub promises is tested over both.
type Transport interface {
	// Dial connects to the node at an address, and is done with its handshake.
	Dial(ctx context.Context, address string) (Conn, error)
	// Accept waits for a connection that another node makes. net.ErrClosed: the transport was closed.
	Accept() (Conn, error)
	// Close ends Accept. Connections that were made stay open.
	Close() error
}

// Conn is a stream of bytes each way. One goroutine writes and one reads; Close and the deadlines may come from any, and end both.
type Conn interface {
	net.Conn
	// ConnectionState has the certificates of the other end; none in memory.
	ConnectionState() tls.ConnectionState
}

// nowWriter is a Conn that can be written to without waiting.
type nowWriter interface {
	// WriteNow takes a few bytes and writes what there is room for. Not done: Finish writes the rest, before anything else is written.
	WriteNow(b []byte) (done bool, err error)
	Finish() error
}
