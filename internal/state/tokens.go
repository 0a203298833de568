package state

import "time"

// The methods about join tokens, which a control-plane server answers.
const (
	MethodTokenMake   = "token.make"   // TokenRequest; MadeToken
	MethodTokenList   = "token.list"   // nothing; Tokens
	MethodTokenRevoke = "token.revoke" // TokenID; Token, as it is then
)

// TokenRequest asks for a token.
type TokenRequest struct {
	Role     string        `json:"role"`
	Lifetime time.Duration `json:"lifetime,omitempty"` // 0: a day
	Once     bool          `json:"once,omitempty"`
	Note     string        `json:"note,omitempty"`
}

// MadeToken is a new token: this is the only time that it is shown.
type MadeToken struct {
	Token   string    `json:"token"`
	ID      string    `json:"id"`
	Role    string    `json:"role"`
	Expires time.Time `json:"expires"`
	Join    []string  `json:"join"` // addresses to join at
}

// TokenID names a token.
type TokenID struct {
	ID string `json:"id"`
}

// Token is a token without its secret.
type Token struct {
	ID      string    `json:"id"`
	Role    string    `json:"role"`
	State   string    `json:"state"` // VALID, USED, EXPIRED, REVOKED
	Once    bool      `json:"once,omitempty"`
	Uses    int       `json:"uses"`
	Made    time.Time `json:"made"`
	Expires time.Time `json:"expires"`
	Note    string    `json:"note,omitempty"`
}

// Tokens lists the cluster's tokens, the oldest first.
type Tokens struct {
	Rows []Token `json:"rows"`
}
