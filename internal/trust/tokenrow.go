package trust

import (
	"crypto/subtle"
	"time"
)

// Tolerance is how far the clock of one machine may be behind another's before what that one has made counts as made in the future.
const Tolerance = time.Hour

// TokenRow is what the tables have of a token.
type TokenRow struct {
	ID      string    `json:"id"`
	Hash    string    `json:"hash"` // of its secret
	Role    Role      `json:"role"` // what its holder becomes
	Once    bool      `json:"once,omitempty"`
	Note    string    `json:"note,omitempty"` // of whoever made it
	Made    time.Time `json:"made"`
	Expires time.Time `json:"expires"`
	Uses    int       `json:"uses"`
	User    string    `json:"user,omitempty"`  // of the last use: the hash of the key that was certified
	Ended   TokenEnd  `json:"ended,omitempty"` // it stays ended, whatever the clock says later
}

// TokenEnd is how a token has ended.
type TokenEnd string

// The ends.
const (
	Revoked TokenEnd = "revoked"
	Expired TokenEnd = "expired"
)

// Use is an attempt to join with a token.
type Use struct {
	Token Token
	As    Role
	Key   string    // hash of the public key to be certified
	Now   time.Time // by the server's wall clock

	// Known is for how long this server has known the token, by a clock that nobody sets. A wall clock that is set back again and again cannot
	// stretch a token's life beyond that.
	Known time.Duration
}

// Redeem gives the row after a use. The row may have changed even if there is an error: a token that is seen to have expired has ended for good. A
// token for one use is granted again to the key that it was granted to, since the first answer may have been lost.
func (r TokenRow) Redeem(u Use) (TokenRow, error) {
	if subtle.ConstantTimeCompare([]byte(r.Hash), []byte(u.Token.Hash())) != 1 {
		return r, Refuse(ErrNoToken, "the cluster knows no such token: make one on a control-plane server")
	}
	r = r.Aged(u.Now, u.Known)
	switch {
	case r.Ended == Revoked:
		return r, Refuse(ErrTokenRevoked, "%v was revoked: make another one on a control-plane server", u.Token)
	case r.Ended == Expired:
		return r, Refuse(ErrTokenExpired, "%v expired at %s: make another one on a control-plane server", u.Token, Stamp(r.Expires))
	case u.Now.Before(r.Made.Add(-Tolerance)):
		return r, Refuse(ErrClock, "%v was made at %s, and the clock of the server says %s: set its clock", u.Token, Stamp(r.Made), Stamp(u.Now))
	case u.As != r.Role:
		return r, Refuse(ErrRole, "%v is for the role %s, not for %q: make another one on a control-plane server", u.Token, r.Role, u.As)
	case r.Once && r.Uses > 0 && r.User == u.Key:
		return r, nil
	case r.Once && r.Uses > 0:
		return r, Refuse(ErrTokenUsed, "%v was for one use, and was used: make another one on a control-plane server", u.Token)
	}
	r.Uses++
	r.User = u.Key
	return r, nil
}

// Aged is the row with its end, if it has expired.
func (r TokenRow) Aged(now time.Time, known time.Duration) TokenRow {
	if r.Ended == "" && (!now.Before(r.Expires) || known >= r.Expires.Sub(r.Made)) {
		r.Ended = Expired
	}
	return r
}

// Stamp is a time as texts show it.
func Stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }
