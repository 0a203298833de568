package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"mobula"
	"mobula/mobulatest"
)

func TestMain(m *testing.M) { mobulatest.Main(m) }

func TestNothingIsLostOrCountedTwice(t *testing.T) {
	r, err := run(mobulatest.Context(t, mobula.WithProcesses()), filepath.Join(t.TempDir(), "journal"), 220, 40)
	if err != nil {
		t.Fatal(err)
	}
	if r.value != 220 || r.kills != 5 {
		t.Errorf("%+v", r)
	}
}

// Each process finds the journal of the one before. A call that is made again gets the same answer, even if later
// calls were counted before the process died.
func TestStateIsFoundAgain(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal")
	for crash := range 3 {
		c, err := NewCounter(t.Context(), path)
		if err != nil {
			t.Fatal(err)
		}
		for call := 1; call <= 2*crash+2; call++ {
			if got, err := c.Add(t.Context(), call, 10); err != nil || got != 10*call {
				t.Errorf("process %d, call %d: %d, %v", crash+1, call, got, err)
			}
		}
		if _, err := c.Add(t.Context(), 2*crash+4, 10); err == nil {
			t.Error("a call was left out and nobody said so")
		}
		if err := c.journal.Close(); err != nil {
			t.Error(err)
		}
	}
	if err := os.WriteFile(path, []byte("10\nhalf an ans\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := NewCounter(t.Context(), path); err == nil || !strings.Contains(err.Error(), "answer 2") {
		t.Errorf("a journal that is none: %v", err)
	}
}
