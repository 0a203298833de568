package trust

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"strings"

	"mobula/internal/errs"
)

// tokenForm begins the text of a token; the number grows with its form.
const tokenForm = "mbl1"

// Token lets a node join a cluster. Its text is mbl1.AUTHORITY.ID.SECRET.
type Token struct {
	Authority [sha256.Size]byte // SHA-256 of the authority's certificate: whom to show the secret
	ID        string            // of its row
	secret    [32]byte          // not exported, so that no log of the struct has it
}

// NewToken makes a token of 32 random bytes.
func NewToken(authority [sha256.Size]byte, id string, secret [32]byte) Token {
	return Token{Authority: authority, ID: id, secret: secret}
}

// Text is what the operator hands over. Whoever has it may join.
func (t Token) Text() string {
	return strings.Join([]string{tokenForm, encode(t.Authority), t.ID, encode(t.secret)}, ".")
}

// String is the token without its secret, to be shown.
func (t Token) String() string { return "token " + t.ID }

// Format writes String, whatever the verb: no format prints the secret.
func (t Token) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(t.String())) } // the State collects

// Hash is what the token's row keeps of the secret.
func (t Token) Hash() string {
	sum := sha256.Sum256(t.secret[:])
	return hex.EncodeToString(sum[:])
}

// ParseToken reads Text, with white space around it. Its errors do not repeat the text.
func ParseToken(text string) (Token, error) {
	bad := func(what string) (Token, error) {
		return Token{}, errs.New(errs.CodeInvalid, "the join token %s: it should read %s.AUTHORITY.ID.SECRET, as it was printed", what, tokenForm)
	}
	part := strings.Split(strings.TrimSpace(text), ".")
	switch {
	case len(part) > 0 && strings.HasPrefix(part[0], "mbl") && part[0] != tokenForm:
		return bad("is of another release")
	case len(part) != 4 || part[0] != tokenForm:
		return bad("is not complete")
	case !isTokenID(part[2]):
		return bad("has no id")
	}
	t := Token{ID: part[2]}
	if !decode(&t.Authority, part[1]) {
		return bad("does not name an authority")
	}
	if !decode(&t.secret, part[3]) {
		return bad("has no secret")
	}
	return t, nil
}

// isTokenID tells whether a text can be a token's id, which is a part of its row's key.
func isTokenID(id string) bool {
	return id != "" && len(id) <= 64 && strings.Trim(id, "abcdefghijklmnopqrstuvwxyz0123456789") == ""
}

var base64url = base64.RawURLEncoding.Strict() // of a value it reads one text only

func encode(b [32]byte) string { return base64url.EncodeToString(b[:]) }

// decode reads encode's text, and nothing but that: the codec itself would skip line breaks.
func decode(to *[32]byte, text string) bool {
	if len(text) != base64url.EncodedLen(len(to)) || strings.ContainsAny(text, "\r\n") {
		return false
	}
	n, err := base64url.Decode(to[:], []byte(text))
	return err == nil && n == len(to)
}
