package node

import (
	"context"
	"crypto/tls"

	"mobula/internal/home"
	"mobula/internal/ids"
	remoteshell "mobula/remote/shell"
	transfershell "mobula/remote/transfer/shell"
)

// Cluster is how a node talks with the others of its cluster.
type Cluster struct {
	Name      string
	Register  home.Register           // who gives the node its home; nil: the control plane
	Transport remoteshell.Transport   // of messages; the node closes it
	Objects   transfershell.Transport // of objects; likewise

	// Address gives where a node is, Verify tells whether the other end of a connection may be it, and Others gives the nodes that there are, but
	// for this one.
	Address func(ctx context.Context, home ids.Home) (string, error)
	Verify  func(state tls.ConnectionState, home ids.Home) error
	Others  func() []ids.Home
}
