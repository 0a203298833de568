package errs

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

// mute is an error without a text, of a type that programs make by mistake: a nil pointer as an error.
type mute struct{ text string }

func (m *mute) Error() string { return m.text }

// spiteful panics with itself wherever it is asked, so that no text of its panic can be had either.
type spiteful struct{}

func (s spiteful) Error() string { panic(s) }

type torn struct{}

func (torn) Error() string { return "torn" }
func (torn) Unwrap() error { panic("no cause") }

// The methods of an error are the program's: wherever one panics, the error still travels, with the text that can be had.
func TestErrorsWhoseMethodsPanicStillTravel(t *testing.T) {
	for name, c := range map[string]struct {
		err  error
		text string
	}{
		"nil pointer":    {(*mute)(nil), "*errs.mute"},
		"panicking text": {spiteful{}, "errs.spiteful"},
		"no cause":       {torn{}, "torn"},
		"wrapped":        {errors.Join(ErrNotFound, (*mute)(nil)), "joinError"},
	} {
		if got := From(c.err); got == nil || !strings.Contains(got.Error(), c.text) {
			t.Errorf("%s: got %v", name, got)
		}
	}
	if !errors.Is(From(errors.Join(ErrNotFound, torn{})), ErrNotFound) {
		t.Error("one that is joined with such an error is lost")
	}
	if got, want := Text(fmt.Errorf("it is %d", 3)), "it is 3"; got != want {
		t.Errorf("got %q", got)
	}
	if got := Text(7); got != "7" {
		t.Errorf("got %q", got)
	}
}

type nested struct {
	Of  any
	All []any
}

// The text of a panic's value is made without end by fmt if the value contains itself.
func TestAValueThatContainsItselfHasAText(t *testing.T) {
	m, s := map[string]any{}, make([]any, 1)
	m["self"], s[0] = m, s
	for name, v := range map[string]any{"map": m, "slice": s, "array": [1]any{m}, "struct": nested{Of: s}, "pointer": &nested{All: s}} {
		if got := Text(v); !strings.Contains(got, "contains itself") {
			t.Errorf("%s: got %.100s", name, got)
		}
	}
	p := &nested{}
	p.Of = p // which fmt shows as an address
	for name, v := range map[string]any{"pointer": p, "struct": nested{Of: 3}, "nil": (*nested)(nil), "bytes": make([]byte, 3)} {
		if got, want := Text(v), fmt.Sprint(v); got != want {
			t.Errorf("%s: got %.100s, want %s", name, got, want)
		}
	}
}

// twofold unwraps to itself, twice.
type twofold struct{}

func (twofold) Error() string     { return "twofold" }
func (e twofold) Unwrap() []error { return []error{e, e, nil} }

// Whatever an error wraps is found on the other side, however deep it is.
func TestDeepCausesAreKept(t *testing.T) {
	RegisterSentinel("convert/deep", errDeep)
	err := errors.Join(errDeep, ErrNotFound)
	for i := range 500 {
		err = fmt.Errorf("level %d: %w", i, err)
	}
	got := From(err)
	if !errors.Is(got, errDeep) || !errors.Is(got, ErrNotFound) || got.Error() != err.Error() {
		t.Errorf("got %.100v", got)
	}
	if got := From(twofold{}); got.Error() != "twofold" { // soon, though it has no end
		t.Errorf("got %v", got)
	}
}

var errDeep = errors.New("deep")
