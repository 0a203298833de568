package node

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"mobula/internal/errs"
)

// A directory has one identity for all lives of its node, and no other directory has it: not one of the same path on another host.
func TestANodeHasOneIdentity(t *testing.T) {
	a, b := t.TempDir(), t.TempDir()
	of := func(dir string) string {
		id, err := identityOf(dir, true)
		if err != nil || !isIdentity(id) {
			t.Fatalf("%q, %v", id, err)
		}
		return id
	}
	if first := of(a); of(a) != first || of(b) == first {
		t.Error("it is not the directory's")
	}
	if st, err := os.Stat(filepath.Join(a, identityName)); err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("its file: %v, %v", st, err)
	}
	if err := os.WriteFile(filepath.Join(a, identityName), []byte("damaged"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := identityOf(a, true); !errors.Is(err, errs.ErrInvalid) {
		t.Errorf("damaged: %v", err)
	}
	if x, err := identityOf(b, false); err != nil || x == of(b) {
		t.Errorf("of a node that keeps nothing: %q, %v", x, err)
	}
}
