package trust

import (
	"errors"
	"testing"
	"time"

	"mobula/internal/errs"
)

var made = time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)

func testRow() TokenRow {
	return TokenRow{ID: "id1", Hash: testToken(7).Hash(), Role: Data, Made: made, Expires: made.Add(24 * time.Hour)}
}

func TestWhoMayUseAToken(t *testing.T) {
	with := func(change func(*TokenRow)) TokenRow {
		r := testRow()
		change(&r)
		return r
	}
	once := with(func(r *TokenRow) { r.Once = true })
	used := with(func(r *TokenRow) { r.Once, r.Uses, r.User = true, 1, "mine" })
	revoked := with(func(r *TokenRow) { r.Ended = Revoked })
	expired := with(func(r *TokenRow) { r.Ended = Expired })
	first := Use{Token: testToken(7), As: Data, Key: "mine", Now: made.Add(time.Minute)}
	at := func(d time.Duration) Use { u := first; u.Now = made.Add(d); return u }
	for _, c := range []struct {
		what string
		row  TokenRow
		use  Use
		uses int
		end  TokenEnd
		want error
	}{
		{"the first use", testRow(), first, 1, "", nil},
		{"of one for one use", once, first, 1, "", nil},
		{"the same again, whose answer was lost", used, first, 1, "", nil},
		{"another node with it", used, Use{Token: testToken(7), As: Data, Key: "another", Now: first.Now}, 1, "", ErrTokenUsed},
		{"another secret", testRow(), Use{Token: testToken(8), As: Data, Key: "mine", Now: first.Now}, 0, "", ErrNoToken},
		{"another secret for one that has ended", revoked, Use{Token: testToken(8), As: Data, Key: "mine", Now: first.Now}, 0, Revoked, ErrNoToken},
		{"no such row", TokenRow{}, first, 0, "", ErrNoToken},
		{"revoked", revoked, first, 0, Revoked, ErrTokenRevoked},
		{"another role", testRow(), Use{Token: testToken(7), As: ControlPlane, Key: "mine", Now: first.Now}, 0, "", ErrRole},
		{"no role", testRow(), Use{Token: testToken(7), Key: "mine", Now: first.Now}, 0, "", ErrRole},
		{"the last moment", testRow(), at(24*time.Hour - 1), 1, "", nil},
		{"the moment after", testRow(), at(24 * time.Hour), 0, Expired, ErrTokenExpired},
		{"the same again, too late", used, at(24 * time.Hour), 1, Expired, ErrTokenExpired},
		{"expired, and the clock was set back", expired, first, 0, Expired, ErrTokenExpired},
		{"known for its lifetime, and the clock stands still", testRow(), Use{Token: testToken(7), As: Data, Key: "mine", Now: made, Known: 24 * time.Hour}, 0, Expired, ErrTokenExpired},
		{"a clock somewhat behind", testRow(), at(-Tolerance), 1, "", nil},
		{"a clock far behind", testRow(), at(-Tolerance - 1), 0, "", ErrClock},
	} {
		got, err := c.row.Redeem(c.use)
		if !errors.Is(err, c.want) || err != nil && !errors.Is(err, errs.ErrPermission) || got.Uses != c.uses || got.Ended != c.end {
			t.Errorf("%s: %d uses, ended %q, %v", c.what, got.Uses, got.Ended, err)
		}
		if err == nil && got.User != "mine" {
			t.Errorf("%s: the user is %q", c.what, got.User)
		}
	}
}
