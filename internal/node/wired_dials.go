package node

import (
	"context"
	"errors"
	"syscall"

	"mobula/internal/errs"
	"mobula/remote"
	"mobula/remote/membership"
	remoteshell "mobula/remote/shell"
)

// dials has the membership hear when a node's machine refuses connections: no process has its port.
type dials struct {
	remoteshell.Transport
	w *wired
}

// Dial implements remoteshell.Transport.
func (d dials) Dial(ctx context.Context, address string) (remoteshell.Conn, error) {
	c, err := d.Transport.Dial(ctx, address)
	if errors.Is(err, syscall.ECONNREFUSED) {
		d.w.nobodyAt(address)
	}
	return c, err
}

// nobodyAt passes on that nobody listens where a node should be.
func (w *wired) nobodyAt(address string) {
	var gone []remote.Life
	w.mu.Lock()
	for _, n := range w.nodes {
		if n.Addresses.Message == address {
			gone = append(gone, n.Life)
		}
	}
	w.mu.Unlock()
	for _, l := range gone {
		w.tell(membership.NobodyListens{Life: l})
		w.links.questions.gone(l.Home, errs.New(errs.CodeNoNode, "nobody listens at %s", address))
	}
}

// met passes on what the connections for messages say of a node.
func (w *wired) met(n remote.Notice) {
	switch n := n.(type) {
	case remote.Up:
		w.tell(membership.Connected{Life: n.Peer})
	case remote.Down:
		w.tell(membership.Broken{Life: n.Peer})
	case remote.Superseded:
		w.requests.endNode("another life of this node has begun: its directory was copied, or started twice", w.errStopping())
	}
}
