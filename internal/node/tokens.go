package node

import (
	"context"
	"time"

	"mobula/internal/errs"
	"mobula/internal/state"
	"mobula/internal/trust"
	"mobula/internal/trust/authority"
)

// authorityHere is the cluster's authority, if this node serves it.
func (w *wired) authorityHere() (*authority.Authority, error) {
	switch {
	case !w.on():
		return nil, errs.New(errs.CodeInvalid, "node %s is of no cluster: start it with --listen HOST, and other nodes can join it", w.cfg.Name)
	case !w.serves():
		var at []string
		for _, s := range w.member.Servers() {
			at = append(at, s.Address)
		}
		return nil, errs.New(errs.CodePermission, "node %s has the role %s, and whom the cluster trusts is a matter of control-plane servers: ask on the machine of one of %v", w.cfg.Name, w.member.Role(), at)
	}
	return w.authority, nil
}

// MakeToken makes a token with which a node of a role can join this node's cluster, any number of times in its lifetime.
func (n *Node) MakeToken(ctx context.Context, role trust.Role, lifetime time.Duration) (string, error) {
	made, err := n.wired.makeToken(ctx, state.TokenRequest{Role: string(role), Lifetime: lifetime})
	return made.Token, err
}

func (w *wired) makeToken(ctx context.Context, in state.TokenRequest) (out state.MadeToken, err error) {
	a, err := w.authorityHere()
	if err != nil {
		return out, err
	}
	t, err := a.Create(ctx, authority.Making{Role: trust.Role(in.Role), Lifetime: in.Lifetime, Once: in.Once, Note: in.Note})
	if err != nil {
		return out, err
	}
	out = state.MadeToken{Token: t.Text(), ID: t.ID, Role: in.Role, Join: []string{w.at.shown(portNodes)}}
	row, err := a.Token(ctx, t.ID)
	out.Expires = row.Expires
	return out, err
}

func (w *wired) listTokens(ctx context.Context, _ empty) (out state.Tokens, err error) {
	a, err := w.authorityHere()
	if err != nil {
		return out, err
	}
	rows, err := a.Tokens(ctx)
	for _, r := range rows {
		out.Rows = append(out.Rows, tokenShown(r))
	}
	return out, err
}

func (w *wired) revokeToken(ctx context.Context, in state.TokenID) (out state.Token, err error) {
	a, err := w.authorityHere()
	if err != nil {
		return out, err
	}
	if err := a.RevokeToken(ctx, in.ID); err != nil {
		return out, err
	}
	row, err := a.Token(ctx, in.ID)
	return tokenShown(row), err
}

// tokenValid is the state of a token that can be used.
const tokenValid = "VALID"

// tokenShown is a token's row as it is listed.
func tokenShown(r trust.TokenRow) state.Token {
	st := tokenValid
	switch {
	case r.Ended == trust.Revoked:
		st = "REVOKED"
	case r.Ended == trust.Expired:
		st = "EXPIRED"
	case r.Once && r.Uses > 0:
		st = "USED"
	}
	return state.Token{ID: r.ID, Role: string(r.Role), State: st, Once: r.Once, Uses: r.Uses, Made: r.Made, Expires: r.Expires, Note: r.Note}
}
