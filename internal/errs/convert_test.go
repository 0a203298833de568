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
