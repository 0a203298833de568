package authority_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"mobula/internal/errs"
	"mobula/internal/testkit"
	"mobula/internal/trust"
	"mobula/internal/trust/authority"
)

func TestTheLifeOfAToken(t *testing.T) {
	c, a := founded(t)
	ctx := t.Context()
	other := c.server()
	create := func(m authority.Making) trust.Token {
		t.Helper()
		tok, err := a.Create(ctx, m)
		must(t, err)
		read, err := trust.ParseToken(tok.Text())
		must(t, err)
		return read
	}
	refused := func(tok trust.Token, key string, want error) {
		t.Helper()
		if err := other.Redeem(ctx, tok, trust.Data, key); !errors.Is(err, want) {
			t.Errorf("%v for %s: %v, want %v", tok, key, err, want)
		}
	}
	many := create(authority.Making{Role: trust.Data, Note: "rack 7"})
	once := create(authority.Making{Role: trust.Data, Once: true, Lifetime: time.Hour})
	gone := create(authority.Making{Role: trust.Data})
	for _, key := range []string{"a", "b", "a"} {
		refused(many, key, nil)
	}
	refused(once, "a", nil)
	refused(once, "a", nil)
	refused(once, "b", trust.ErrTokenUsed)
	must(t, a.RevokeToken(ctx, gone.ID))
	refused(gone, "a", trust.ErrTokenRevoked)
	refused(trust.NewToken(many.Authority, many.ID, [32]byte{1}), "a", trust.ErrNoToken)
	refused(trust.NewToken(many.Authority, "none", [32]byte{1}), "a", trust.ErrNoToken)
	if err := a.RevokeToken(ctx, "none"); !errors.Is(err, errs.ErrNotFound) {
		t.Errorf("a token that does not exist: %v", err)
	}
	if err := other.Redeem(ctx, many, trust.ControlPlane, "a"); !errors.Is(err, trust.ErrRole) {
		t.Errorf("more than it is for: %v", err)
	}
	list := func() (out string) {
		t.Helper()
		rows, err := other.Tokens(ctx)
		must(t, err)
		for _, r := range rows {
			switch r.ID {
			case many.ID:
				out += " many"
			case once.ID:
				out += " once"
			case gone.ID:
				out += " gone"
			}
			out += fmt.Sprint(r.Uses, r.Ended, r.Note)
		}
		return out
	}
	same := func(when, want string) {
		t.Helper()
		for word := range strings.FieldsSeq(want) { // made in the same instant, they are listed by their random ids
			if !strings.Contains(list(), word) {
				t.Errorf("%s: %s, want %s", when, list(), want)
			}
		}
	}
	same("now", "many3rack 7 once1 gone0revoked")
	c.clock.Pass(time.Hour)
	same("after an hour", "many3rack once1expired gone0revoked")
	refused(once, "a", trust.ErrTokenExpired)
	c.clock.Pass(23 * time.Hour)
	refused(many, "c", trust.ErrTokenExpired)
	must(t, a.Sweep(ctx))
	same("after a day", "many3expired once1expired gone0revoked")
	c.clock.Pass(8 * day)
	must(t, a.Sweep(ctx))
	if got := list(); got != "" {
		t.Errorf("in the end: %s", got)
	}
	for _, m := range []authority.Making{{}, {Role: "admin"}, {Role: trust.Data, Lifetime: -1}} {
		if _, err := a.Create(ctx, m); !errors.Is(err, errs.ErrInvalid) {
			t.Errorf("%+v: %v", m, err)
		}
	}
}

// However the clock of a server is set: a token that was seen to expire stays so, none lives longer than its lifetime, and a new one can be made and
// used at once.
func TestTokensAndAClockThatIsSet(t *testing.T) {
	prepared := func(t *testing.T) (*cluster, *authority.Authority, trust.Token) {
		c, a := founded(t)
		tok, err := a.Create(t.Context(), authority.Making{Role: trust.Data})
		must(t, err)
		return c, a, tok
	}
	redeem := func(t *testing.T, a *authority.Authority, tok trust.Token, want error) {
		t.Helper()
		if err := a.Redeem(t.Context(), tok, trust.Data, "key"); !errors.Is(err, want) {
			t.Errorf("got %v, want %v", err, want)
		}
	}
	usable := func(t *testing.T, a *authority.Authority) {
		t.Helper()
		tok, err := a.Create(t.Context(), authority.Making{Role: trust.Data})
		must(t, err)
		redeem(t, a, tok, nil)
	}
	t.Run("back after it was swept", func(t *testing.T) {
		c, a, tok := prepared(t)
		c.clock.Pass(25 * time.Hour)
		must(t, a.Sweep(t.Context()))
		c.clock.Set(-25 * time.Hour)
		redeem(t, a, tok, trust.ErrTokenExpired)
		redeem(t, c.server(), tok, trust.ErrTokenExpired) // one that was just started
		usable(t, a)
	})
	t.Run("back after a use was refused", func(t *testing.T) {
		c, a, tok := prepared(t)
		c.clock.Pass(25 * time.Hour)
		redeem(t, a, tok, trust.ErrTokenExpired)
		c.clock.Set(-25 * time.Hour)
		redeem(t, c.server(), tok, trust.ErrTokenExpired)
	})
	t.Run("back again and again", func(t *testing.T) {
		c, a, tok := prepared(t)
		for range 23 {
			c.clock.Pass(time.Hour)
			c.clock.Set(-time.Hour)
			redeem(t, a, tok, nil)
		}
		c.clock.Pass(time.Hour)
		c.clock.Set(-time.Hour)
		redeem(t, a, tok, trust.ErrTokenExpired)
		usable(t, a)
	})
	t.Run("far back", func(t *testing.T) {
		c, a, tok := prepared(t)
		c.clock.Pass(time.Minute)
		c.clock.Set(-30 * time.Minute)
		redeem(t, a, tok, nil)
		usable(t, a)
		c.clock.Set(-20 * 365 * day)
		redeem(t, a, tok, trust.ErrClock)
		c.clock.Set(20*365*day + 30*time.Minute)
		redeem(t, a, tok, nil)
	})
	t.Run("far ahead, and right again", func(t *testing.T) {
		c, a, tok := prepared(t)
		c.clock.Set(365 * day)
		usable(t, a)
		must(t, a.Sweep(t.Context()))
		c.clock.Set(-365 * day)
		redeem(t, a, tok, trust.ErrTokenExpired)
		usable(t, a)
	})
}

// A token for one use has one user, however many ask at once, of however many servers, whatever answers of the tables are lost, and however often
// everybody asks again.
func TestOneUseIsOneUser(t *testing.T) {
	testkit.Check(t, func(rt *rapid.T) {
		c := newCluster()
		ctx, cancel := context.WithTimeout(context.Background(), testkit.Patience())
		defer cancel()
		servers := make([]*authority.Authority, rapid.IntRange(1, 3).Draw(rt, "servers"))
		for i := range servers {
			servers[i] = c.server()
			if err := servers[i].Found(ctx, "prod"); err != nil {
				rt.Fatal(err)
			}
		}
		tok, err := servers[0].Create(ctx, authority.Making{Role: trust.Data, Once: true})
		if err != nil {
			rt.Fatal(err)
		}
		errLost := errors.New("no answer")
		faults := rapid.IntRange(0, 60).Draw(rt, "faults per cent")
		var mu sync.Mutex
		random := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 0))
		c.Fault = func(string, bool) error {
			mu.Lock()
			defer mu.Unlock()
			if random.IntN(100) < faults {
				return errLost
			}
			return nil
		}
		users := make([]error, rapid.IntRange(2, 8).Draw(rt, "users"))
		start := make(chan struct{})
		var all sync.WaitGroup
		for i := range users {
			all.Go(func() {
				<-start
				for users[i] = errLost; errors.Is(users[i], errLost); {
					users[i] = servers[i%len(servers)].Redeem(ctx, tok, trust.Data, fmt.Sprint("key ", i))
				}
			})
		}
		close(start)
		all.Wait()
		let := 0
		for i, err := range users {
			if err == nil {
				let++
			} else if !errors.Is(err, trust.ErrTokenUsed) {
				rt.Errorf("user %d: %v", i, err)
			}
		}
		if let != 1 {
			rt.Errorf("%d were let in", let)
		}
	})
}

func TestRevocationsAreKept(t *testing.T) {
	c, a := founded(t)
	ctx := t.Context()
	must(t, a.RevokeCertificate(ctx, "a1", "lost"))
	must(t, a.RevokeNode(ctx, 3, 4, "stolen"))
	must(t, a.RevokeNode(ctx, 3, 2, "a life before"))
	must(t, c.server().RevokeNode(ctx, 5, 1, ""))
	for _, err := range []error{a.RevokeCertificate(ctx, "", "nothing"), a.RevokeNode(ctx, 3, 0, "nothing")} {
		if !errors.Is(err, errs.ErrInvalid) {
			t.Errorf("to revoke nothing: %v", err)
		}
	}
	list, err := c.server().Revocations(ctx)
	must(t, err)
	name := nodeOf(t, a) // home 3
	for epoch, want := range map[uint64]error{2: trust.ErrRevoked, 4: trust.ErrRevoked, 5: nil} {
		name.Epoch = epoch
		if err := list.Check(name, "b"); !errors.Is(err, want) || err != nil && !strings.Contains(err.Error(), "stolen") {
			t.Errorf("epoch %d: %v", epoch, err)
		}
	}
	if err := list.Check(name, "a1"); !errors.Is(err, trust.ErrRevoked) {
		t.Errorf("by its serial number: %v", err)
	}
}
