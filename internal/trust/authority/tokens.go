package authority

import (
	"context"
	"crypto/rand"
	"maps"
	"slices"
	"strings"
	"time"

	"mobula/internal/errs"
	"mobula/internal/trust"
)

// Making is what a token is to be.
type Making struct {
	Role     trust.Role
	Lifetime time.Duration // 0: Config.TokenLife
	Once     bool
	Note     string
}

// Create makes a token. Its text is known to the caller alone: the tables have a hash.
func (a *Authority) Create(ctx context.Context, m Making) (trust.Token, error) {
	if !m.Role.Known() || m.Lifetime < 0 {
		return trust.Token{}, errs.New(errs.CodeInvalid, "no token for the role %q that lives %v: the roles are %s, %s and %s",
			m.Role, m.Lifetime, trust.Data, trust.ControlPlane, trust.Driver)
	}
	if m.Lifetime == 0 {
		m.Lifetime = a.cfg.TokenLife
	}
	cluster, err := a.Cluster(ctx)
	if err != nil {
		return trust.Token{}, err
	}
	var secret [32]byte
	_, _ = rand.Read(secret[:]) // never fails: crypto/rand says so
	t := trust.NewToken(cluster.Hash, strings.ToLower(rand.Text()), secret)
	now := a.cfg.Wall().UTC()
	row := trust.TokenRow{ID: t.ID, Hash: t.Hash(), Role: m.Role, Once: m.Once, Note: m.Note, Made: now, Expires: now.Add(m.Lifetime)}
	if err := write(ctx, a.cfg.Tables, tokenPrefix+t.ID, row, 0); err != nil {
		return trust.Token{}, err // if it was written all the same, nobody has its secret
	}
	a.knownFor(t.ID)
	return t, nil
}

// Redeem takes a use of a token, for a key that is to be certified, or refuses.
func (a *Authority) Redeem(ctx context.Context, t trust.Token, as trust.Role, key string) error {
	return update(ctx, a.cfg.Tables, tokenPrefix+t.ID, func(row trust.TokenRow, exists bool) (trust.TokenRow, error) {
		known := time.Duration(0)
		if exists {
			known = a.knownFor(t.ID)
		}
		return row.Redeem(trust.Use{Token: t, As: as, Key: key, Now: a.cfg.Wall(), Known: known})
	})
}

// RevokeToken ends a token. Who has joined with it stays: see RevokeNode.
func (a *Authority) RevokeToken(ctx context.Context, id string) error {
	return update(ctx, a.cfg.Tables, tokenPrefix+id, func(row trust.TokenRow, exists bool) (trust.TokenRow, error) {
		if !exists {
			return row, noToken(id)
		}
		row.Ended = trust.Revoked
		return row, nil
	})
}

// Token gives one token, without its secret.
func (a *Authority) Token(ctx context.Context, id string) (trust.TokenRow, error) {
	row, revision, err := read[trust.TokenRow](ctx, a.cfg.Tables, tokenPrefix+id)
	switch {
	case err != nil:
		return row, err
	case revision == 0:
		return row, noToken(id)
	}
	return a.aged(row), nil
}

func noToken(id string) error { return errs.New(errs.CodeNotFound, "the cluster has no token %q", id) }

// aged is a row as it is to be shown now.
func (a *Authority) aged(row trust.TokenRow) trust.TokenRow {
	return row.Aged(a.cfg.Wall(), a.knownFor(row.ID))
}

// Tokens lists the tokens, the oldest first, without their secrets.
func (a *Authority) Tokens(ctx context.Context) ([]trust.TokenRow, error) {
	rows, err := all[trust.TokenRow](ctx, a.cfg.Tables, tokenPrefix)
	if err != nil {
		return nil, err
	}
	out := slices.Collect(maps.Values(rows))
	for i, row := range out {
		out[i] = a.aged(row)
	}
	slices.SortFunc(out, func(a, b trust.TokenRow) int {
		if c := a.Made.Compare(b.Made); c != 0 {
			return c
		}
		return strings.Compare(a.ID, b.ID)
	})
	return out, nil
}

// Sweep marks the tokens that have expired, and removes those that ended long ago. Each control-plane server calls it every minute: what it has seen
// to have expired stays so when a clock is set back.
func (a *Authority) Sweep(ctx context.Context) error {
	keys, err := a.cfg.Tables.Keys(ctx, tokenPrefix)
	if err != nil {
		return err
	}
	a.forget(keys)
	for _, key := range keys {
		if err := a.sweep(ctx, key); err != nil {
			return err
		}
	}
	return nil
}

// sweep marks or removes one token.
func (a *Authority) sweep(ctx context.Context, key string) error {
	row, revision, err := read[trust.TokenRow](ctx, a.cfg.Tables, key)
	if err != nil || revision == 0 {
		return err
	}
	now := a.cfg.Wall()
	aged := row.Aged(now, a.knownFor(row.ID))
	switch {
	case row.Ended != "" && now.After(row.Expires.Add(a.cfg.Remembered)):
		err = a.cfg.Tables.Delete(ctx, key, revision)
	case aged != row:
		err = write(ctx, a.cfg.Tables, key, aged, revision)
	}
	if err == nil || isConflict(err) { // another server was first; the next sweep looks again
		return nil
	}
	return err
}

// knownFor is for how long this server has known a token.
func (a *Authority) knownFor(id string) time.Duration {
	now := a.cfg.Steady()
	a.mu.Lock()
	defer a.mu.Unlock()
	first, ok := a.known[id]
	if !ok {
		a.known[id] = now
		return 0
	}
	return time.Duration(now - first)
}

// forget drops what is known of tokens that have no row any more.
func (a *Authority) forget(keys []string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	maps.DeleteFunc(a.known, func(id string, _ int64) bool { return !slices.Contains(keys, tokenPrefix+id) })
}
