package credentials

import (
	"crypto/tls"
	"crypto/x509"
	"sync"
	"sync/atomic"
	"time"

	"mobula/internal/trust"
)

// Live is a node's credentials in use.
type Live struct {
	wall func() time.Time
	view atomic.Pointer[view]

	mu    sync.Mutex
	conns map[*tracked]struct{} // guarded by mu, which changes of view hold too
}

// view is what a handshake goes by. It does not change: another one takes its place.
type view struct {
	Credentials
	name        trust.Name
	certificate *tls.Certificate
	pool        *x509.CertPool
	revoked     trust.Revocations
}

// tracked is a connection.
type tracked struct {
	chain []*x509.Certificate
	cut   func(error)
}

// NewLive uses credentials, by the machine's wall clock.
func NewLive(c Credentials, wall func() time.Time) (*Live, error) {
	l := &Live{wall: wall, conns: make(map[*tracked]struct{})}
	v, err := newView(c)
	if err != nil {
		return nil, err
	}
	l.view.Store(v)
	return l, nil
}

func newView(c Credentials) (*view, error) {
	if err := c.Check(); err != nil {
		return nil, err
	}
	name, err := c.Name()
	if err != nil {
		return nil, err
	}
	return &view{Credentials: c, name: name, certificate: c.certificate(), pool: poolOf(c.Roots)}, nil
}

// Name is this node.
func (l *Live) Name() trust.Name { return l.view.Load().name }

// Use takes other credentials of this node into use, from the next handshake on. Connections whose root they do not trust any more are cut.
func (l *Live) Use(c Credentials) error {
	next, err := newView(c)
	if err != nil {
		return err
	}
	return l.change(func(v *view) (*view, error) {
		if next.name.Cluster != v.name.Cluster || next.name.Home != v.name.Home {
			return nil, trust.Refuse(trust.ErrNode, "the credentials are of node %v of cluster %s, and this is node %v of cluster %s",
				next.name.Home, next.name.Cluster, v.name.Home, v.name.Cluster)
		}
		next.revoked = v.revoked
		return next, nil
	})
}

// Revoke takes another list into use. Connections that it revokes are cut.
func (l *Live) Revoke(list trust.Revocations) {
	_ = l.change(func(v *view) (*view, error) { // this one never fails
		next := *v
		next.revoked = list
		return &next, nil
	})
}

// change replaces the view and cuts what it does not stand for.
func (l *Live) change(to func(*view) (*view, error)) error {
	l.mu.Lock()
	v, err := to(l.view.Load())
	if err != nil {
		l.mu.Unlock()
		return err
	}
	l.view.Store(v)
	gone := make(map[*tracked]error)
	for t := range l.conns {
		if err := v.stands(t.chain); err != nil {
			gone[t] = err
			delete(l.conns, t)
		}
	}
	l.mu.Unlock()
	for t, err := range gone {
		t.cut(err)
	}
	return nil
}

// Track has a connection cut when its certificate counts no more: cut is called at most once. An error says that it counts no more already. done ends
// the watch; a cut that is under way goes on.
func (l *Live) Track(cs tls.ConnectionState, cut func(error)) (done func(), err error) {
	t := &tracked{chain: cs.PeerCertificates, cut: cut}
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.view.Load().stands(t.chain); err != nil {
		return nil, err
	}
	l.conns[t] = struct{}{}
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.conns, t)
	}, nil
}

// stands refuses a connection's certificate that is revoked, or whose root is not trusted any more, whatever the time is.
func (v *view) stands(chain []*x509.Certificate) error {
	if len(chain) == 0 {
		return errNone
	}
	if err := verify(chain, v.pool, issued(chain[0])); err != nil {
		return err
	}
	name, err := NameOf(chain[0])
	if err != nil {
		return err
	}
	return v.revoked.Check(name, SerialOf(chain[0]))
}

// Due is how long to wait before looking again whether to renew the certificate; 0: it is time. That is when two thirds of its life have passed, or
// up to a tenth earlier: the signature spreads the renewals of nodes that joined together. Whoever waits looks once an hour at least, since a clock
// may be set.
func (l *Live) Due() time.Duration {
	c := l.view.Load().Chain[0]
	life := c.NotAfter.Sub(c.NotBefore)
	early := life / 10 * time.Duration(c.Signature[0]) / 255
	return min(max(0, c.NotBefore.Add(life*2/3-early).Sub(l.wall())), time.Hour)
}
