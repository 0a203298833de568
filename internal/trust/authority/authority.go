package authority

import (
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"crypto/x509"
	"errors"
	"fmt"
	"sync"
	"time"

	"mobula/internal/errs"
	"mobula/internal/trust"
)

// ErrNone says that the cluster has no authority yet.
var ErrNone = errors.New("authority: the cluster has none")

// Config is what an Authority is told. DefaultConfig sets all but tables, secret and clocks.
type Config struct {
	Tables Tables
	Secret Secret
	Wall   func() time.Time // the machine's wall clock
	Steady func() int64     // nanoseconds, by a clock that nobody sets

	Lifetime     time.Duration // of a node's certificate
	Grace        time.Duration // after which a certificate that has expired is not renewed any more
	RootLifetime time.Duration
	Overlap      time.Duration // for which the root before is trusted after a rotation
	TokenLife    time.Duration // unless told
	Remembered   time.Duration // for which a token that has ended is listed
}

// DefaultConfig has certificates of a week. A cluster that was off for a month starts without new tokens.
func DefaultConfig(t Tables, s Secret, wall func() time.Time, steady func() int64) Config {
	const day = 24 * time.Hour
	return Config{Tables: t, Secret: s, Wall: wall, Steady: steady,
		Lifetime: 7 * day, Grace: 30 * day, RootLifetime: 3650 * day, Overlap: 40 * day, TokenLife: day, Remembered: 7 * day}
}

// Authority serves a cluster's authority on one control-plane server. It is safe for concurrent use.
type Authority struct {
	cfg Config

	mu    sync.Mutex
	known map[string]int64 // guarded by mu: token id -> when this server first saw it, by the steady clock
}

// New makes the server's side of an authority, which may not exist yet: see Found.
func New(cfg Config) *Authority { return &Authority{cfg: cfg, known: make(map[string]int64)} }

// Found makes the cluster's authority, unless there is one with this server's secret. The secret is on disk before: a server that is killed in
// between goes on with it. Of two servers that found at once one succeeds, and the other gets ErrSecret.
func (a *Authority) Found(ctx context.Context, name string) error {
	cluster := a.cfg.Secret.Cluster()
	root, err := a.newRoot(cluster, name, nil)
	if err != nil {
		return err
	}
	row := trust.AuthorityRow{Form: trust.AuthorityForm, Cluster: cluster, Name: name, Roots: []trust.Root{root}}
	if err := write(ctx, a.cfg.Tables, authorityKey, row, 0); err != nil && !errors.Is(err, ErrConflict) {
		return err
	}
	_, err = a.current(ctx)
	return err
}

// Rotate makes a new root, which signs from now on. The root before is trusted for the overlap; 0 if its key is known to others: then every node has
// to join again.
func (a *Authority) Rotate(ctx context.Context, overlap time.Duration) error {
	return a.change(ctx, func(row trust.AuthorityRow) (trust.AuthorityRow, error) {
		signer, err := a.open(row)
		if err != nil {
			return row, err
		}
		now := a.cfg.Wall()
		root, err := a.newRoot(row.Cluster, row.Name, signer)
		if err != nil {
			return row, err
		}
		return row.Rotated(root, now, now.Add(overlap).UTC())
	})
}

// EndOverlap has the root that signs be the only one that is trusted. Nodes that have a certificate of the one before alone have to join again.
func (a *Authority) EndOverlap(ctx context.Context) error {
	return a.change(ctx, func(row trust.AuthorityRow) (trust.AuthorityRow, error) { return row.Finished(), nil })
}

// change replaces the authority's row, again for as long as another server is first.
func (a *Authority) change(ctx context.Context, to func(trust.AuthorityRow) (trust.AuthorityRow, error)) error {
	for {
		row, revision, err := a.row(ctx)
		if err != nil {
			return err
		}
		next, err := to(row)
		if err != nil {
			return err
		}
		if err := write(ctx, a.cfg.Tables, authorityKey, next, revision); !errors.Is(err, ErrConflict) {
			return err
		}
	}
}

// Cluster is what an authority says of itself.
type Cluster struct {
	ID, Name string
	Hash     [sha256.Size]byte   // of the root that signs: what tokens name
	Roots    []*x509.Certificate // trusted ones
}

// Cluster asks which cluster it is.
func (a *Authority) Cluster(ctx context.Context) (Cluster, error) {
	s, err := a.current(ctx)
	if err != nil {
		return Cluster{}, err
	}
	return Cluster{ID: s.row.Cluster, Name: s.row.Name, Hash: sha256.Sum256(s.certificate.Raw), Roots: s.trusted}, nil
}

// signer is an opened authority.
type signer struct {
	row         trust.AuthorityRow
	certificate *x509.Certificate // of the root that signs
	key         ed25519.PrivateKey
	trusted     []*x509.Certificate
	crosses     []*x509.Certificate // of the trusted roots
}

// current reads the authority and opens its key.
func (a *Authority) current(ctx context.Context) (*signer, error) {
	row, _, err := a.row(ctx)
	if err != nil {
		return nil, err
	}
	return a.open(row)
}

// row reads the authority's row.
func (a *Authority) row(ctx context.Context) (row trust.AuthorityRow, revision uint64, err error) {
	row, revision, err = read[trust.AuthorityRow](ctx, a.cfg.Tables, authorityKey)
	switch {
	case err != nil:
		return row, 0, err
	case revision == 0:
		return row, 0, ErrNone
	}
	return row, revision, row.Check()
}

// open opens the key of the root that signs.
func (a *Authority) open(row trust.AuthorityRow) (*signer, error) {
	now := a.cfg.Wall()
	s := &signer{row: row}
	for _, r := range row.Trusted(now) {
		c, err := x509.ParseCertificate(r.Certificate)
		if err != nil {
			return nil, errs.New(errs.CodeInvalid, "a certificate of the cluster's authority is damaged: %v", err)
		}
		s.trusted = append(s.trusted, c)
		if len(s.trusted) > 1 { // a cross-signature of a root that is not trusted any more serves nobody
			cross, err := x509.ParseCertificate(r.Cross)
			if err != nil {
				return nil, errs.New(errs.CodeInvalid, "a certificate of the cluster's authority is damaged: %v", err)
			}
			s.crosses = append(s.crosses, cross)
		}
	}
	s.certificate = s.trusted[len(s.trusted)-1]
	switch {
	case now.Before(s.certificate.NotBefore):
		return nil, trust.Refuse(trust.ErrClock, "the clock of the server says %s, before the cluster's authority was made (%s): set its clock",
			trust.Stamp(now), trust.Stamp(s.certificate.NotBefore))
	case now.After(s.certificate.NotAfter):
		return nil, trust.Refuse(trust.ErrExpired, "the cluster's authority expired at %s, by the clock of the server (%s): set it, or begin a new cluster",
			trust.Stamp(s.certificate.NotAfter), trust.Stamp(now))
	}
	key, err := a.cfg.Secret.open(row.Cluster, s.certificate.Raw, row.Signs().Key)
	if err != nil {
		return nil, err
	}
	if !key.Public().(ed25519.PublicKey).Equal(s.certificate.PublicKey) {
		return nil, fmt.Errorf("%w: its key is not that of its certificate", ErrSecret)
	}
	s.key = key
	return s, nil
}
