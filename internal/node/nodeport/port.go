package nodeport

import (
	"crypto/tls"
	"log/slog"
	"net"

	"mobula/internal/errs"
	"mobula/internal/trust"
	"mobula/internal/trust/credentials"
	"mobula/internal/trust/join"
	remoteshell "mobula/remote/shell"
)

// ObjectsALPN is the protocol of objects between nodes.
const ObjectsALPN = "mobula-obj/1"

// protocols are what the port speaks, with whom.
var protocols = map[string]credentials.Peer{
	remoteshell.ALPN: {May: trust.Talk},
	ObjectsALPN:      {May: trust.Transfer},
	hereALPN:         {May: trust.Transfer},
	join.Protocol:    {Anybody: true},
}

// Port is a node's port for other nodes.
type Port struct {
	live   *credentials.Live
	mux    *remoteshell.Mux
	dialer net.Dialer
}

// Listen takes a TCP address.
func Listen(address string) (*net.TCPListener, error) {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, errs.New(errs.CodeInvalid, "the address for other nodes %s cannot be had: %v; set another one with --listen", address, err)
	}
	return l.(*net.TCPListener), nil
}

// New makes a Port of a listener, which is the Port's from now on. live is what this node proves with, and dialer what it connects with.
func New(l net.Listener, live *credentials.Live, dialer net.Dialer, log *slog.Logger) (*Port, error) {
	mux, err := remoteshell.NewMux(l, live.Port(protocols), log)
	if err != nil {
		return nil, err
	}
	return &Port{live: live, mux: mux, dialer: dialer}, nil
}

// Serve accepts connections until Close.
func (p *Port) Serve() error { return p.mux.Serve() }

// Close closes the port. Connections that were accepted stay open.
func (p *Port) Close() error { return p.mux.Close() }

// Messages is the transport of messages.
func (p *Port) Messages() (remoteshell.Transport, error) {
	a, err := p.mux.Register(remoteshell.ALPN)
	if err != nil {
		return nil, err
	}
	return remoteshell.NewTCP(a, p.live.Config(credentials.Peer{May: trust.Talk}), p.dialer, p.track), nil
}

// Joins accepts nodes that join, and nodes that renew their certificates.
func (p *Port) Joins() (*remoteshell.Acceptor, error) { return p.mux.Register(join.Protocol) }

// track has a connection closed when its certificate counts no more.
func (p *Port) track(cs tls.ConnectionState, cut func(error)) (done func(), err error) {
	return p.live.Track(cs, cut)
}
