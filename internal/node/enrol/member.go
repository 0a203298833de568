package enrol

import (
	"context"
	"crypto/sha256"
	"crypto/x509"
	"errors"
	"io/fs"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"mobula/internal/errs"
	"mobula/internal/trust"
	"mobula/internal/trust/authority"
	"mobula/internal/trust/credentials"
	"mobula/internal/trust/join"
)

// Config is what a Member is told.
type Config struct {
	Dir     string // of the node; no other process uses it
	Node    string // the node's name
	Cluster string // the name of the cluster that it is to join; empty: whichever the token is of
	Role    trust.Role
	Join    []string // addresses of nodes of the cluster; none: the directory knows some, or the node founds a cluster
	Token   string   // to join with
	Wall    func() time.Time
	Dial    func(ctx context.Context, address string) (net.Conn, error)

	DialTime time.Duration // how long it may take, before the next address is tried; default 2 s

	// Of a node that joins: its port, and where other nodes reach that.
	Listener join.Listener
	Address  string
}

// Member is a node's place in its cluster. It is safe for concurrent use once it is in.
type Member struct {
	cfg    Config
	dir    credentials.Dir
	live   atomic.Pointer[credentials.Live] // nil until it is in
	secret *authority.Secret                // of a control-plane server; nil: it is none, or not in yet

	mu     sync.Mutex
	known  known        // guarded by mu
	bundle trust.Bundle // guarded by mu
}

// dialTime is more than a connection takes to anywhere. A machine that is gone answers nothing, and the system would try it for two minutes.
const dialTime = 2 * time.Second

// Open reads what the directory has.
func Open(cfg Config) (*Member, error) {
	if cfg.DialTime == 0 {
		cfg.DialTime = dialTime
	}
	m := &Member{cfg: cfg, dir: credentials.InDir(cfg.Dir)}
	var err error
	if m.known, err = readKnown(cfg.Dir); err != nil {
		return nil, err
	}
	if m.bundle, err = readBundle(cfg.Dir); err != nil {
		return nil, err
	}
	if secret, err := authority.ReadSecret(cfg.Dir); err == nil {
		m.secret = &secret
	} else if !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	kept, err := m.dir.Read()
	if errors.Is(err, fs.ErrNotExist) {
		return m, m.mayEnter()
	}
	if err != nil {
		return nil, err
	}
	if err := m.begin(kept); err != nil {
		return nil, err
	}
	return m, m.mayReturn(kept)
}

// begin takes the node's first credentials in this process into use, with what the bundle revokes that it followed last.
func (m *Member) begin(c credentials.Credentials) error {
	live, err := credentials.NewLive(c, m.cfg.Wall)
	if err != nil {
		return err
	}
	if m.bundle.Cluster == live.Name().Cluster {
		live.Revoke(trust.NewRevocations(m.bundle.Revoked))
	} else {
		m.bundle = trust.Bundle{} // of a cluster that the directory was of before
	}
	m.live.Store(live)
	return nil
}

// Entered tells whether a directory is of a node that has joined or founded a cluster.
func Entered(dir string) bool {
	_, err := credentials.InDir(dir).Read()
	return !errors.Is(err, fs.ErrNotExist)
}

// mayEnter refuses a node that has no credentials and cannot get any.
func (m *Member) mayEnter() error {
	switch {
	case len(m.cfg.Join) == 0 && m.cfg.Token != "":
		return errs.New(errs.CodeInvalid, "there is a token to join with, and no address: say --join HOST:PORT")
	case len(m.cfg.Join) > 0 && m.cfg.Token == "":
		return errs.New(errs.CodeInvalid, "to join the cluster of %v a token is needed: make one there with mobula token create, and give it by --token or MOBULA_TOKEN", m.cfg.Join)
	case len(m.cfg.Join) > 0 && m.secret != nil && m.cfg.Role != trust.ControlPlane:
		return errs.New(errs.CodeInvalid, "the directory %s has begun to found a cluster of its own; give another one with --dir", m.cfg.Dir)
	}
	if m.cfg.Token != "" {
		_, err := trust.ParseToken(m.cfg.Token)
		return err
	}
	return nil
}

// mayReturn refuses a node whose credentials are of another cluster than the one that it is told to join, or of another role.
func (m *Member) mayReturn(kept credentials.Credentials) error {
	name := m.Live().Name()
	if m.cfg.Role != "" && m.cfg.Role != name.Role {
		return errs.New(errs.CodeInvalid, "the node in %s has the role %s in its cluster, and is started with the role %s; start it as before, or give a fresh directory with --dir",
			m.cfg.Dir, name.Role, m.cfg.Role)
	}
	if m.cfg.Token == "" {
		return nil
	}
	t, err := trust.ParseToken(m.cfg.Token)
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(kept.Roots, func(root *x509.Certificate) bool { return sha256.Sum256(root.Raw) == t.Authority }) {
		return errs.New(errs.CodeInvalid, "the directory %s is of cluster %s, and the token is of another one; give a fresh directory with --dir", m.cfg.Dir, name.Cluster)
	}
	return nil
}

// In tells whether the node has credentials; else it joins (Joins), or founds a cluster.
func (m *Member) In() bool { return m.Live() != nil }

// Joins tells whether a node that is not in is to join.
func (m *Member) Joins() bool { return len(m.cfg.Join) > 0 }

// Role is what the node is, or wants to be.
func (m *Member) Role() trust.Role {
	switch {
	case m.Live() != nil:
		return m.Live().Name().Role
	case m.cfg.Role != "":
		return m.cfg.Role
	case m.Joins():
		return trust.Data
	}
	return trust.ControlPlane
}

// Live is what the node proves with; nil until it is in.
func (m *Member) Live() *credentials.Live { return m.live.Load() }

// Cluster is the id of a control-plane server's cluster.
func (m *Member) Cluster() string {
	if l := m.Live(); l != nil {
		return l.Name().Cluster
	}
	return m.secret.Cluster()
}

// Servers are the control-plane servers, as last heard.
func (m *Member) Servers() []join.Addresses {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.known.Servers)
}

// GossipKeys are the keys of the gossip, as last heard: the first one encrypts.
func (m *Member) GossipKeys() [][]byte {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.known.GossipKeys)
}

// Learn notes where the servers are and which keys the gossip has.
func (m *Member) Learn(e join.Enrolment) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	next := known{Form: knownForm, Enrolment: e}
	if next.equal(m.known) {
		return nil
	}
	if err := next.write(m.cfg.Dir); err != nil {
		return err
	}
	m.known = next
	return nil
}
