package shell

import (
	"context"
	"net"

	"mobula/internal/ids"
)

// Transport makes connections between nodes, for bulk data alone.
type Transport interface {
	// Dial connects to a node, and has made sure that it is that node. It ends with ctx.
	Dial(ctx context.Context, to ids.Home) (net.Conn, error)
	// Accept gives the next connection that another node has made, and says which node it is. An error ends it.
	Accept() (net.Conn, ids.Home, error)
	// Close ends Accept. Connections stay open.
	Close() error
}

// SameMachine is a connection that may be between two processes of one machine.
type SameMachine interface {
	net.Conn
	// SameMachine tells whether it is, and the kernel alone copies what one end writes to where the other reads it. Both ends say the same. Then chunks have no checksums.
	SameMachine() bool
}
