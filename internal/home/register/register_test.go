package register_test

import (
	"errors"
	"testing"

	"mobula/internal/errs"
	"mobula/internal/home/register"
)

// Of two lives that begin with the same knowledge one is told: the register has seen the other.
func TestARowFencesACopy(t *testing.T) {
	row := register.Row{Home: 3, Identity: "me", Epoch: 7, Life: "last"}
	claim := func(identity string, last *register.Row) register.Claim {
		return register.Claim{Identity: identity, Life: "next", Last: last}
	}
	for _, c := range []struct {
		claim register.Claim
		want  error
	}{
		{claim("me", &register.Row{Home: 3, Epoch: 7}), nil}, {claim("me", &register.Row{Home: 3, Epoch: 6}), register.ErrCopied},
		{claim("you", &register.Row{Home: 3, Epoch: 7}), errs.ErrInvalid}, {claim("me", &register.Row{Home: 4, Epoch: 7}), errs.ErrInvalid}, {claim("me", nil), errs.ErrInvalid},
	} {
		got, err := row.Next(c.claim)
		if !errors.Is(err, c.want) || err == nil && got != (register.Row{Home: 3, Identity: "me", Epoch: 8, Life: "next"}) {
			t.Errorf("%+v: %+v, %v", c.claim, got, err)
		}
	}
}
