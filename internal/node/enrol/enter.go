package enrol

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"io/fs"
	"net"

	"mobula/internal/errs"
	"mobula/internal/home/register"
	"mobula/internal/trust"
	"mobula/internal/trust/authority"
	"mobula/internal/trust/credentials"
	"mobula/internal/trust/join"
)

// Join joins the cluster with the token, at the first address that answers, and gives the home that the node has in it.
func (m *Member) Join(ctx context.Context, claim register.Claim) (register.Row, error) {
	t, err := trust.ParseToken(m.cfg.Token)
	if err != nil {
		return register.Row{}, err
	}
	g, err := m.ask(ctx, m.cfg.Join, claim, func(ctx context.Context, address string, w join.Wish) (join.Grant, error) {
		conn, err := m.dial(ctx, address)
		if err != nil {
			return join.Grant{}, err
		}
		stop, err := join.Answer(m.cfg.Listener, w.Key)
		if err != nil {
			return join.Grant{}, errors.Join(err, conn.Close())
		}
		g, err := join.Ask(ctx, conn, t, w, m.cfg.Wall)
		return g, errors.Join(err, stop())
	})
	if err != nil {
		return register.Row{}, err
	}
	if l := m.Live(); l != nil && l.Name().Home != g.Row.Home {
		m.live.Store(nil) // the directory's certificate is of the node that it was copied from
	}
	return g.Row, m.enter(g)
}

// ask asks at one address after the other, until one answers. A refusal is an answer.
func (m *Member) ask(ctx context.Context, addresses []string, claim register.Claim, at func(context.Context, string, join.Wish) (join.Grant, error)) (join.Grant, error) {
	key, err := m.dir.NextKey()
	if err != nil {
		return join.Grant{}, err
	}
	wish := join.Wish{Node: m.cfg.Node, Cluster: m.cfg.Cluster, Address: m.cfg.Address, Role: m.Role(), Claim: claim, Key: key}
	var all []error
	for _, a := range addresses {
		g, err := at(ctx, a, wish)
		if err == nil || errors.Is(err, errs.ErrPermission) || errors.Is(err, errs.ErrVersion) || errors.Is(err, errs.ErrInvalid) || errors.Is(err, errs.ErrNameTaken) {
			return g, err
		}
		if ctx.Err() != nil {
			return join.Grant{}, fmt.Errorf("%w: %s: %w", context.Cause(ctx), a, err)
		}
		all = append(all, fmt.Errorf("%s: %w", a, err))
	}
	return join.Grant{}, errs.New(errs.CodeNoNode, "no control-plane server of the cluster answers: %v", errors.Join(all...))
}

// dial connects to an address, if that answers in time.
func (m *Member) dial(ctx context.Context, address string) (net.Conn, error) {
	bound, cancel := context.WithTimeout(ctx, m.cfg.DialTime)
	defer cancel()
	conn, err := m.cfg.Dial(bound, address)
	if err != nil && bound.Err() != nil && ctx.Err() == nil {
		return nil, fmt.Errorf("no machine answers there, or a firewall drops what is sent: tried for %v", m.cfg.DialTime)
	}
	return conn, err
}

// enter keeps what the node was granted, the credentials last.
func (m *Member) enter(g join.Grant) error {
	if g.Secret != nil {
		if err := g.Secret.Write(m.cfg.Dir); err != nil {
			return err
		}
		m.secret = g.Secret
	}
	if err := m.Learn(g.Enrolment); err != nil {
		return err
	}
	return m.use(g.Credentials)
}

// use keeps credentials, and takes them into use.
func (m *Member) use(c credentials.Credentials) error {
	if err := m.dir.Write(c); err != nil {
		return err
	}
	if live := m.Live(); live != nil {
		return live.Use(c)
	}
	return m.begin(c)
}

// Secret is what opens the authority's key. A node that founds a cluster makes it, and has it on disk before anything is encrypted with it.
func (m *Member) Secret() (authority.Secret, error) {
	if m.secret != nil {
		return *m.secret, nil
	}
	s := authority.NewSecret()
	if err := s.Write(m.cfg.Dir); err != nil {
		return s, err
	}
	m.secret = &s
	return s, nil
}

// Found makes the cluster, whose tables this node has, and certifies itself as the node of a home.
func (m *Member) Found(ctx context.Context, a *authority.Authority, cluster string, row register.Row) error {
	if err := a.Found(ctx, cluster); err != nil {
		return err
	}
	return m.Certify(ctx, a, row)
}

// Certify has a control-plane server certify itself, for a new key.
func (m *Member) Certify(ctx context.Context, a *authority.Authority, row register.Row) error {
	of, err := a.Cluster(ctx)
	if err != nil {
		return err
	}
	key, err := m.dir.NextKey()
	if err != nil {
		return err
	}
	issued, err := a.Issue(ctx, trust.Name{Cluster: of.ID, Role: trust.ControlPlane, Home: row.Home, Epoch: row.Epoch}, m.cfg.Node, key.Public().(ed25519.PublicKey))
	if err != nil {
		return err
	}
	return m.use(credentials.Credentials{Key: key, Chain: issued.Chain, Roots: issued.Roots})
}

// Recertify has a control-plane server whose certificate is to be renewed certify itself before it has the tables, by its copy of the authority's row: servers
// that were all off for longer than a certificate counts could not meet to give one another the next. It does nothing where there is no copy yet.
func (m *Member) Recertify(ctx context.Context, cfg authority.Config) error {
	if m.Live().Due() > 0 || m.Live().Revoked() != nil {
		return nil
	}
	var err error
	if cfg.Secret, err = m.Secret(); err != nil {
		return err
	}
	a, err := authority.FromCopy(m.cfg.Dir, cfg)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	name := m.Live().Name()
	return m.Certify(ctx, a, register.Row{Home: name.Home, Epoch: name.Epoch})
}

// Renew gets the next certificate from a control-plane server.
func (m *Member) Renew(ctx context.Context, claim register.Claim) error {
	var addresses []string
	for _, s := range m.Servers() {
		addresses = append(addresses, s.Address)
	}
	g, err := m.ask(ctx, addresses, claim, func(ctx context.Context, address string, w join.Wish) (join.Grant, error) {
		conn, err := m.dial(ctx, address)
		if err != nil {
			return join.Grant{}, err
		}
		return join.Renew(ctx, conn, m.Live(), w, m.cfg.Wall)
	})
	if err != nil {
		return err
	}
	return m.enter(g)
}
