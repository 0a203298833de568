package home_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"mobula/internal/home"
	"mobula/internal/home/register"
	"mobula/internal/home/register/registertest"
)

// losing is a register that begins a life and whose answer is lost on the way.
type losing struct {
	home.Register
	lose bool
}

func (l *losing) Begin(ctx context.Context, c register.Claim) (register.Row, error) {
	row, err := l.Register.Begin(ctx, c)
	if l.lose && err == nil {
		return register.Row{}, errLost
	}
	return row, err
}

var errLost = errors.New("no answer in time")

// A directory whose register has begun a life, and whose node did not hear of it, is no copy: its next start asks for that life again.
func TestAnAnswerOfTheRegisterThatIsLost(t *testing.T) {
	dir := t.TempDir()
	identity := filepath.Join(dir, "identity")
	if err := os.WriteFile(identity, []byte("me\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	reg := &losing{Register: new(registertest.Memory)}
	cfg := home.Config{Dir: dir, Identity: "me", IdentityFile: identity, Register: reg}
	for life := range uint64(3) {
		reg.lose = true
		for range 2 {
			if _, err := home.Open(t.Context(), cfg); !errors.Is(err, errLost) {
				t.Fatalf("life %d: %v", life, err)
			}
		}
		reg.lose = false
		h, err := home.Open(t.Context(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		if n, err := h.Next(home.Jobs); err != nil || n != life+1 || h.Epoch() != life+1 {
			t.Errorf("life %d: epoch %d, job %d, %v", life, h.Epoch(), n, err)
		}
		if err := h.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
