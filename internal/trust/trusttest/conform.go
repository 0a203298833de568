package trusttest

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"mobula/internal/trust/authority"
)

// Conform tries tables that are empty.
func Conform(t *testing.T, tables authority.Tables) {
	ctx := t.Context()
	write := func(key, row string, revision uint64, want error) {
		t.Helper()
		if err := tables.Write(ctx, key, []byte(row), revision); !errors.Is(err, want) {
			t.Fatalf("write %s over revision %d: %v, want %v", key, revision, err, want)
		}
	}
	read := func(key, want string) uint64 {
		t.Helper()
		row, revision, err := tables.Read(ctx, key)
		if err != nil || string(row) != want || (revision == 0) != (want == "") {
			t.Fatalf("of %s is read %q, revision %d, %v; want %q", key, row, revision, err, want)
		}
		return revision
	}
	keys := func(prefix string, want ...string) {
		t.Helper()
		got, err := tables.Keys(ctx, prefix)
		slices.Sort(got)
		if err != nil || !slices.Equal(got, want) {
			t.Fatalf("keys of %q: %q, %v; want %q", prefix, got, err, want)
		}
	}

	// A row is written over the revision that was read, and over no other.
	keys("token.")
	read("authority", "")
	write("authority", "a", 7, authority.ErrConflict)
	write("authority", "a", 0, nil)
	write("authority", "b", 0, authority.ErrConflict)
	first := read("authority", "a")
	write("authority", "b", first, nil)
	write("authority", "c", first, authority.ErrConflict)
	if second := read("authority", "b"); second <= first {
		t.Errorf("revision %d after %d", second, first)
	}

	// Keys are listed by their prefix. A row that is removed is gone, and can be made again.
	write("token.abc", "1", 0, nil)
	write("token.abd", "2", 0, nil)
	write("revoked.home.3", "3", 0, nil)
	write("revoked.serial.3", "4", 0, nil)
	keys("token.", "token.abc", "token.abd")
	keys("revoked.", "revoked.home.3", "revoked.serial.3")
	at := read("token.abc", "1")
	if err := tables.Delete(ctx, "token.abc", at+100); !errors.Is(err, authority.ErrConflict) {
		t.Errorf("remove another revision: %v", err)
	}
	if err := tables.Delete(ctx, "token.abc", at); err != nil {
		t.Fatal(err)
	}
	read("token.abc", "")
	keys("token.", "token.abd")
	write("token.abc", "5", at, authority.ErrConflict)
	write("token.abc", "5", 0, nil)
	read("token.abc", "5")

	// Of many that write at once one wins each round.
	for round := range 10 {
		_, revision, err := tables.Read(ctx, "authority")
		if err != nil {
			t.Fatal(err)
		}
		var won atomic.Int32
		var all sync.WaitGroup
		for i := range 8 {
			all.Go(func() {
				switch err := tables.Write(ctx, "authority", fmt.Append(nil, round, i), revision); {
				case err == nil:
					won.Add(1)
				case !errors.Is(err, authority.ErrConflict):
					t.Errorf("round %d: %v", round, err)
				}
			})
		}
		all.Wait()
		if won.Load() != 1 {
			t.Errorf("in round %d %d writers won", round, won.Load())
		}
	}
}
