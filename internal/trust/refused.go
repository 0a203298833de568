package trust

import (
	"errors"
	"fmt"

	"mobula/internal/errs"
)

// Why somebody is refused.
var (
	ErrNoToken      = errors.New("trust: no such token")
	ErrTokenExpired = errors.New("trust: the token has expired")
	ErrTokenRevoked = errors.New("trust: the token was revoked")
	ErrTokenUsed    = errors.New("trust: the token was used")
	ErrRole         = errors.New("trust: the role may not do this")
	ErrCluster      = errors.New("trust: another cluster")
	ErrAuthority    = errors.New("trust: not the authority that was asked for")
	ErrNode         = errors.New("trust: another node")
	ErrCertificate  = errors.New("trust: the certificate is not valid")
	ErrExpired      = errors.New("trust: the certificate has expired")
	ErrRevoked      = errors.New("trust: the certificate was revoked")
	ErrClock        = errors.New("trust: the clocks of two machines are too far apart")
	ErrUnreachable  = errors.New("trust: other nodes do not reach the node")
	ErrStale        = errors.New("trust: a later trust bundle is known")
)

// reasons names the sentinels in messages. A name is never given to another one.
var reasons = map[string]error{
	"no-token": ErrNoToken, "token-expired": ErrTokenExpired, "token-revoked": ErrTokenRevoked, "token-used": ErrTokenUsed,
	"role": ErrRole, "cluster": ErrCluster, "authority": ErrAuthority, "node": ErrNode,
	"certificate": ErrCertificate, "expired": ErrExpired, "revoked": ErrRevoked, "clock": ErrClock,
	"unreachable": ErrUnreachable, "stale": ErrStale,
}

// Refused says why somebody is refused, to be shown.
type Refused struct {
	Why  error // a sentinel of this package
	Text string
}

// Refuse makes a *Refused.
func Refuse(why error, format string, args ...any) error {
	return &Refused{Why: why, Text: fmt.Sprintf(format, args...)}
}

// Error is the text.
func (r *Refused) Error() string { return r.Text }

// Unwrap gives the reason, and that it is a matter of permission.
func (r *Refused) Unwrap() []error { return []error{r.Why, errs.ErrPermission} }

// Reason names the sentinel in a message.
func (r *Refused) Reason() string {
	for name, why := range reasons {
		if why == r.Why {
			return name
		}
	}
	return ""
}

// Told is the refusal that another node's message tells. The reason of a later release is a matter of permission and no more.
func Told(reason, text string) error {
	why, ok := reasons[reason]
	if !ok {
		return errs.New(errs.CodePermission, "%s", text)
	}
	return &Refused{Why: why, Text: text}
}
