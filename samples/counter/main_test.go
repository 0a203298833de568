package main

import (
	"path/filepath"
	"testing"

	"mobula"
	"mobula/mobulatest"
)

func TestMain(m *testing.M) { mobulatest.Main(m) }

func TestNothingIsLostOrCountedTwice(t *testing.T) {
	r, err := run(mobulatest.Context(t, mobula.WithProcesses()), filepath.Join(t.TempDir(), "state"), 220, 40)
	if err != nil {
		t.Fatal(err)
	}
	if r.value != 220 || r.kills != 5 {
		t.Errorf("%+v", r)
	}
}

func TestStateIsFoundAgain(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state")
	for want := 1; want <= 3; want++ {
		c, err := NewCounter(t.Context(), path)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := c.Add(t.Context(), want, 1); err != nil || got != want {
			t.Errorf("%d, %v, want %d", got, err, want)
		}
		if got, err := c.Add(t.Context(), want, 1); err != nil || got != want {
			t.Errorf("made again: %d, %v, want %d", got, err, want)
		}
	}
}
