package shell

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"slices"
	"sync"
	"time"

	"mobula/internal/errs"
)

// ErrALPN is the end of a connection whose other side speaks no protocol that this one does.
var ErrALPN = errors.New("remote: no common protocol")

const (
	muxHandshake = 5 * time.Second // for a stranger to show who he is, and for an acceptor to take him
	muxStrangers = 256             // handshakes at once; others wait in the port's queue
)

// Mux shares a port among protocols, which TLS tells apart by their ALPN. Before the handshake is over nothing is sent but what TLS sends.
type Mux struct {
	l     net.Listener
	cfg   *tls.Config
	log   *slog.Logger
	slots chan struct{} // full while as many strangers are there as may be
	ctx   context.Context
	end   context.CancelFunc
	group sync.WaitGroup // of handshakes

	patience time.Duration // muxHandshake

	mu        sync.Mutex
	acceptors map[string]*Acceptor // guarded by mu: by ALPN
}

// NewMux makes a Mux of a port, which is the Mux's from now on. Only TLS 1.3 is spoken, whatever cfg says; its NextProtos are replaced.
func NewMux(l net.Listener, cfg *tls.Config, log *slog.Logger) (*Mux, error) {
	if cfg.GetConfigForClient != nil {
		return nil, errs.New(errs.CodeInvalid, "remote: tls.Config.GetConfigForClient would replace the protocols of the port; use GetCertificate and VerifyConnection")
	}
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	m := &Mux{l: l, cfg: cfg, log: log, slots: make(chan struct{}, muxStrangers), patience: muxHandshake, acceptors: make(map[string]*Acceptor)}
	m.ctx, m.end = context.WithCancel(context.Background())
	return m, nil
}

// Register gives the acceptor of a protocol. Until then, and after its Close, connections for it are refused.
func (m *Mux) Register(protocol string) (*Acceptor, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.acceptors[protocol] != nil {
		return nil, errs.New(errs.CodeInvalid, "remote: protocol %q of the port is taken", protocol)
	}
	a := &Acceptor{mux: m, protocol: protocol, conns: make(chan *secured), closed: make(chan struct{})}
	m.acceptors[protocol] = a
	return a, nil
}

// Addr is where the port is.
func (m *Mux) Addr() net.Addr { return m.l.Addr() }

// Serve accepts connections until Close, and returns nil then.
func (m *Mux) Serve() error {
	defer m.group.Wait()
	for {
		select {
		case m.slots <- struct{}{}:
		case <-m.ctx.Done():
			return nil
		}
		tcp, err := m.l.Accept()
		switch {
		case err == nil:
			m.group.Go(func() {
				defer func() { <-m.slots }()
				m.welcome(tcp)
			})
			continue
		case errors.Is(err, net.ErrClosed):
			return nil
		}
		<-m.slots
		m.log.Warn("remote: the port cannot accept", "err", err)
		select {
		case <-time.After(100 * time.Millisecond): // out of descriptors, most likely
		case <-m.ctx.Done():
			return nil
		}
	}
}

// welcome secures a connection and hands it to the acceptor of its protocol.
func (m *Mux) welcome(tcp net.Conn) {
	ctx, cancel := context.WithTimeout(m.ctx, m.patience)
	defer cancel()
	s, err := handshake(ctx, tcp, tls.Server, m.config())
	if err != nil {
		m.log.Info("remote: a connection is refused", "err", err)
		return
	}
	m.mu.Lock()
	a := m.acceptors[s.ConnectionState().NegotiatedProtocol]
	m.mu.Unlock()
	if a == nil { // it asked for no protocol, or for one that has gone meanwhile
		err = ErrALPN
	} else {
		err = a.offer(ctx, s)
	}
	if err != nil {
		m.log.Info("remote: a connection is refused", "from", tcp.RemoteAddr(), "err", err)
		_ = s.Close() // err says more
	}
}

// config is the configuration for the protocols that there are now.
func (m *Mux) config() *tls.Config {
	m.mu.Lock()
	defer m.mu.Unlock()
	return config(m.cfg, slices.Sorted(maps.Keys(m.acceptors))...)
}

// Close closes the port, unless it is closed, and ends handshakes and acceptors. Connections that were accepted stay open.
func (m *Mux) Close() error {
	m.end()
	err := m.l.Close()
	if errors.Is(err, net.ErrClosed) {
		err = nil
	}
	m.mu.Lock()
	left := slices.Collect(maps.Values(m.acceptors))
	m.mu.Unlock()
	for _, a := range left {
		err = errors.Join(err, a.Close())
	}
	return err
}

// Acceptor has the connections of one protocol.
type Acceptor struct {
	mux      *Mux
	protocol string
	conns    chan *secured
	closed   chan struct{}
	once     sync.Once
}

// offer hands a connection over.
func (a *Acceptor) offer(ctx context.Context, c *secured) error {
	select {
	case a.conns <- c:
		return nil
	case <-a.closed:
		return ErrALPN
	case <-ctx.Done():
		return fmt.Errorf("remote: nobody accepts %q: %w", a.protocol, context.Cause(ctx))
	}
}

// Accept waits for a connection. net.ErrClosed: the acceptor or the Mux was closed.
func (a *Acceptor) Accept() (Conn, error) {
	c, err := a.accept()
	if err != nil {
		return nil, err
	}
	return c, nil
}

// AcceptBelow is Accept that gives the connection below TLS too, for a protocol in which TLS ends.
func (a *Acceptor) AcceptBelow() (c Conn, below net.Conn, err error) {
	s, err := a.accept()
	if err != nil {
		return nil, nil, err
	}
	return s, s.below.Conn, nil
}

func (a *Acceptor) accept() (*secured, error) {
	select {
	case c := <-a.conns:
		return c, nil
	case <-a.closed:
		return nil, net.ErrClosed
	}
}

// Close ends Accept, and has the protocol's connections refused.
func (a *Acceptor) Close() error {
	a.once.Do(func() {
		a.mux.mu.Lock()
		delete(a.mux.acceptors, a.protocol)
		a.mux.mu.Unlock()
		close(a.closed)
	})
	return nil
}
