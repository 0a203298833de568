package node

import (
	"errors"
	"io"
	"net"

	"mobula/internal/errs"
	"mobula/internal/trust"
)

// free tells of the ports that a node of a role will listen on besides its first one which are taken, all of them: before the node joins, which may use up its
// token, and before NATS tries one, which does not say what it waits for.
func (a addresses) free(role trust.Role) error {
	var all []error
	try := func(what, address, setting string, listen func(string) (io.Closer, error)) {
		l, err := listen(address)
		if err == nil {
			err = l.Close()
		}
		if err != nil {
			all = append(all, errs.New(errs.CodeInvalid, "the address for %s %s cannot be had: %v; set another port with %s", what, address, err, setting))
		}
	}
	tcp := func(address string) (io.Closer, error) { return net.Listen("tcp", address) }
	udp := func(address string) (io.Closer, error) { return net.ListenPacket("udp", address) }
	if role != trust.Driver {
		try("gossip", a.gossip, "--gossip-port", tcp)
		try("gossip", a.gossip, "--gossip-port", udp)
	}
	if role == trust.ControlPlane && a.port[portGCS] != 0 {
		try("nodes that use the tables", a.gcs, "--gcs-port", tcp)
		try("other control-plane servers", a.routes, "--routes-port", tcp)
	}
	return errors.Join(all...)
}
