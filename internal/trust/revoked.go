package trust

import (
	"time"

	"mobula/internal/errs"
	"mobula/internal/ids"
)

// Revocation is a row of the list of what counts no more: one certificate, by its serial number, or all that were issued to a home up to a life of
// it. After that the home can be let in again, by a token: its next certificate is of a later life.
type Revocation struct {
	Serial string    `json:"serial,omitempty"`
	Home   ids.Home  `json:"home"`
	Epoch  uint64    `json:"epoch,omitempty"` // of a whole home: up to this one
	At     time.Time `json:"at"`
	Why    string    `json:"why,omitempty"`
}

// Check refuses rows that revoke nothing.
func (r Revocation) Check() error {
	if (r.Serial == "") == (r.Epoch == 0) {
		return errs.New(errs.CodeInvalid, "a revocation is of one serial number, or of a home up to an epoch: %+v", r)
	}
	return nil
}

// Revocations is the list, to be asked. Its zero value is empty. It does not change: another list takes its place.
type Revocations struct {
	serials map[string]Revocation
	homes   map[ids.Home]Revocation
}

// NewRevocations makes the list of the rows.
func NewRevocations(rows []Revocation) Revocations {
	l := Revocations{serials: make(map[string]Revocation), homes: make(map[ids.Home]Revocation)}
	for _, r := range rows {
		if r.Serial != "" {
			l.serials[r.Serial] = r
		} else if r.Epoch > l.homes[r.Home].Epoch {
			l.homes[r.Home] = r
		}
	}
	return l
}

// Check refuses a certificate that is on the list.
func (l Revocations) Check(n Name, serial string) error {
	r, revoked := l.serials[serial]
	if !revoked {
		r = l.homes[n.Home]
		revoked = r.Epoch > 0 && n.Epoch <= r.Epoch
	}
	if !revoked {
		return nil
	}
	why := r.Why
	if why == "" {
		why = "no reason was given"
	}
	return Refuse(ErrRevoked, "the certificate of node %v was revoked at %s (%s): join again with a token", n.Home, Stamp(r.At), why)
}
