package authority

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"mobula/internal/errs"
	"mobula/internal/trust"
)

// Publish has the trust bundle, which every node reads, say what the tables say, and gives it. Whoever has changed a row publishes it, and each server
// does so every minute: one that is killed in between holds nothing back.
//
// seen is the bundle that this server follows. What that revokes stays revoked, and the next number is above its own, even if the tables were put back
// from an old copy: nodes would not believe them.
func (a *Authority) Publish(ctx context.Context, seen trust.Bundle) (trust.Bundle, error) {
	for ctx.Err() == nil {
		// The present bundle is read first: who has published meanwhile makes the write a conflict.
		present, revision, err := read[trust.SignedBundle](ctx, a.cfg.Tables, BundleKey)
		if err != nil {
			return trust.Bundle{}, err
		}
		was, _ := present.Read() // one that is damaged is replaced
		row, _, err := a.row(ctx)
		if err != nil {
			return trust.Bundle{}, err
		}
		b, err := a.bundle(ctx, row, was, seen)
		if err != nil {
			return trust.Bundle{}, err
		}
		body, err := json.Marshal(b)
		if err != nil {
			return trust.Bundle{}, fmt.Errorf("trust bundle: %w", err)
		}
		if revision != 0 && bytes.Equal(body, present.Body) {
			return b, nil
		}
		b.Number++
		next, err := a.signed(row, b)
		if err != nil {
			return trust.Bundle{}, err
		}
		if err = write(ctx, a.cfg.Tables, BundleKey, next, revision); !errors.Is(err, ErrConflict) {
			return b, err
		}
	}
	return trust.Bundle{}, fmt.Errorf("trust bundle: %w", context.Cause(ctx))
}

// bundle is what the tables say, with the last number. A read may be behind what was published: then the later of the two counts.
func (a *Authority) bundle(ctx context.Context, row trust.AuthorityRow, was, seen trust.Bundle) (trust.Bundle, error) {
	rows, err := all[trust.Revocation](ctx, a.cfg.Tables, revokedPrefix)
	if err != nil {
		return trust.Bundle{}, err
	}
	gossip, err := a.Gossip(ctx)
	if err != nil {
		return trust.Bundle{}, err
	}
	keys, err := a.derive(row.Cluster, gossip)
	if err != nil {
		return trust.Bundle{}, err
	}
	b := trust.Bundle{
		Form: trust.BundleForm, Cluster: row.Cluster, Number: max(was.Number, seen.Number),
		Revoked: trust.Merged(slices.Collect(maps.Values(rows)), was.Revoked, seen.Revoked),
		Keys:    trust.Fingerprints(keys), Stage: gossip.Stage,
	}
	if was.Stage > gossip.Stage {
		b.Keys, b.Stage = was.Keys, was.Stage
	}
	for _, r := range row.Trusted(a.cfg.Wall()) {
		b.Roots = append(b.Roots, trust.Fingerprint(r.Certificate))
	}
	return b, nil
}

// signed signs a bundle with each root that is trusted.
func (a *Authority) signed(row trust.AuthorityRow, b trust.Bundle) (s trust.SignedBundle, err error) {
	if s.Body, err = json.Marshal(b); err != nil {
		return s, fmt.Errorf("trust bundle: %w", err)
	}
	for _, r := range row.Trusted(a.cfg.Wall()) {
		c, err := x509.ParseCertificate(r.Certificate)
		if err != nil {
			return s, errs.New(errs.CodeInvalid, "a certificate of the cluster's authority is damaged: %v", err)
		}
		key, err := a.cfg.Secret.open(row.Cluster, c.Raw, r.Key)
		if err != nil {
			return s, err
		}
		s.Signatures = append(s.Signatures, ed25519.Sign(key, s.Signed()))
	}
	return s, nil
}
