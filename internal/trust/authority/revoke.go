package authority

import (
	"context"
	"errors"
	"maps"
	"slices"

	"mobula/internal/ids"
	"mobula/internal/trust"
)

// RevokeCertificate ends one certificate, by its serial number as SerialOf in package credentials writes it.
func (a *Authority) RevokeCertificate(ctx context.Context, serial, why string) error {
	return a.revoke(ctx, revokedPrefix+"serial."+serial, trust.Revocation{Serial: serial, Why: why})
}

// RevokeNode ends all certificates of a home that were issued up to one of its lives.
func (a *Authority) RevokeNode(ctx context.Context, home ids.Home, epoch uint64, why string) error {
	return a.revoke(ctx, revokedPrefix+"home."+home.String(), trust.Revocation{Home: home, Epoch: epoch, Why: why})
}

// revoke writes a row, unless one is there that revokes as much.
func (a *Authority) revoke(ctx context.Context, key string, r trust.Revocation) error {
	r.At = a.cfg.Wall().UTC()
	if err := r.Check(); err != nil {
		return err
	}
	return update(ctx, a.cfg.Tables, key, func(row trust.Revocation, exists bool) (trust.Revocation, error) {
		if exists && row.Epoch >= r.Epoch {
			return row, nil
		}
		return r, nil
	})
}

// Revocations reads the list.
func (a *Authority) Revocations(ctx context.Context) (trust.Revocations, error) {
	rows, err := all[trust.Revocation](ctx, a.cfg.Tables, revokedPrefix)
	if err != nil {
		return trust.Revocations{}, err
	}
	return trust.NewRevocations(slices.Collect(maps.Values(rows))), nil
}

// isConflict tells whether another server has changed the row meanwhile.
func isConflict(err error) bool { return errors.Is(err, ErrConflict) }
