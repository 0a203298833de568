package home

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"mobula/internal/errs"
	"mobula/internal/home/register"
	"mobula/internal/ids"
	"mobula/internal/testkit"
)

func config(t *testing.T, dir string) Config {
	t.Helper()
	id := filepath.Join(dir, "identity")
	if _, err := os.Stat(id); err != nil {
		must(t, os.WriteFile(id, []byte("me\n"), 0o600))
	}
	return Config{Dir: dir, Identity: "me", IdentityFile: id, Register: Own{}}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func open(t *testing.T, cfg Config) *Home {
	t.Helper()
	h, err := Open(t.Context(), cfg)
	must(t, err)
	return h
}

func next(t *testing.T, h *Home, k Kind) uint64 {
	t.Helper()
	n, err := h.Next(k)
	must(t, err)
	return n
}

// A graceful stop gives back what was reserved: the next life goes on with the next number, and users see no gap.
func TestNumbersGoOnAfterAStop(t *testing.T) {
	cfg := config(t, t.TempDir())
	for life := range uint64(3) {
		h := open(t, cfg)
		if h.Epoch() != life+1 || h.Row().Home != 0 {
			t.Errorf("life %d: epoch %d of home %v", life, h.Epoch(), h.Row().Home)
		}
		for _, k := range []Kind{Jobs, Clients, Workers} {
			if n := next(t, h, k); n != life+1 {
				t.Errorf("life %d: %v %d", life, k, n)
			}
		}
		must(t, h.Close())
	}
}

// A node that is killed at any moment gives no number out that an earlier life gave out, and every life has a larger epoch.
func TestNoNumberIsGivenOutTwice(t *testing.T) {
	testkit.Check(t, func(rt *rapid.T) {
		dir := t.TempDir()
		cfg := config(t, dir)
		cfg.Write = func(path string, data []byte) error { return os.WriteFile(path, data, 0o600) }
		seen := [kinds]uint64{}
		var epoch uint64
		for range rapid.IntRange(1, 6).Draw(rt, "lives") {
			h := open(t, cfg)
			if h.Epoch() <= epoch {
				rt.Fatalf("epoch %d after %d", h.Epoch(), epoch)
			}
			epoch = h.Epoch()
			for range rapid.IntRange(0, 30).Draw(rt, "calls") {
				k := Kind(rapid.IntRange(0, int(kinds)-1).Draw(rt, "kind"))
				var n uint64
				if rapid.Bool().Draw(rt, "counted elsewhere") {
					n = h.Last(k) + rapid.Uint64Range(1, 2*blocks[k]).Draw(rt, "ahead")
					must(t, h.Used(k, n))
				} else {
					n = next(t, h, k)
				}
				if n <= seen[k] {
					rt.Fatalf("%v %d after %d", k, n, seen[k])
				}
				seen[k] = n
			}
			if h.work.Wait(); rapid.Bool().Draw(rt, "in order") {
				must(t, h.Close())
			}
		}
	})
}

// Reserved numbers last while the disk is full; then a number is refused, and none is given out that is not on disk.
func TestAFullDiskIsToldWhenTheBlockIsUsedUp(t *testing.T) {
	dir := t.TempDir()
	h := open(t, config(t, dir))
	must(t, os.RemoveAll(dir))
	for range blocks[Jobs] {
		next(t, h, Jobs)
	}
	if n, err := h.Next(Jobs); !errors.Is(err, errs.ErrInvalid) {
		t.Errorf("got %d, %v", n, err)
	}
	h.work.Wait()
	must(t, os.Mkdir(dir, 0o700))
	if n := next(t, h, Jobs); n != blocks[Jobs]+1 {
		t.Errorf("with room again: %d", n)
	}
	h.work.Wait()
}

// Release 0.4 counted its lives in the file epoch, from the wall clock on, and its jobs by the logs that were there.
func TestADirectoryOfRelease04GoesOn(t *testing.T) {
	dir := t.TempDir()
	cfg := config(t, dir)
	cfg.LastJob = 41
	must(t, os.WriteFile(filepath.Join(dir, epochName), []byte("415000000\n"), 0o600))
	h := open(t, cfg)
	if h.Epoch() != 415_000_001 || next(t, h, Jobs) != 42 || h.Row().Home != 0 {
		t.Errorf("epoch %d, home %v", h.Epoch(), h.Row().Home)
	}
	must(t, h.Close())
	if h = open(t, cfg); h.Epoch() != 415_000_002 || next(t, h, Jobs) != 43 {
		t.Errorf("then epoch %d", h.Epoch())
	}
}

func TestDamageIsNamed(t *testing.T) {
	dir := t.TempDir()
	cfg := config(t, dir)
	for _, name := range []string{epochName, fileName} {
		path := filepath.Join(dir, name)
		for _, text := range []string{"", "x", "{}", `{"identity":"me","reserved":{"jobs":1}}`, `{"home":134217728,"identity":"me","reserved":{"jobs":1,"clients":1,"workers":1,"leases":1}}`} {
			must(t, os.WriteFile(path, []byte(text), 0o600))
			if _, err := Open(t.Context(), cfg); !errors.Is(err, errs.ErrInvalid) {
				t.Errorf("%s: %q: %v", name, text, err)
			}
		}
		must(t, os.Remove(path))
	}
	open(t, cfg)
	cfg.Identity = "another"
	if _, err := Open(t.Context(), cfg); !errors.Is(err, errs.ErrInvalid) {
		t.Errorf("of another node: %v", err)
	}
}

// A copy of a directory is refused, unless its user says that it is the only one. The original goes on.
func TestACopiedDirectoryIsNoticed(t *testing.T) {
	dir, to := t.TempDir(), t.TempDir()
	cfg := config(t, dir)
	must(t, open(t, cfg).Close())
	must(t, os.CopyFS(to, os.DirFS(dir)))
	copied := config(t, to)
	if _, err := Open(t.Context(), copied); !errors.Is(err, register.ErrCopied) || !errors.Is(err, errs.ErrInvalid) {
		t.Fatalf("a copy: %v", err)
	}
	must(t, open(t, cfg).Close())
	copied.Moved = true
	must(t, open(t, copied).Close())
	copied.Moved = false
	must(t, open(t, copied).Close())

	at := filepath.Join(t.TempDir(), "elsewhere") // moved within a file system it is the same
	must(t, os.Rename(dir, at))
	must(t, open(t, config(t, at)).Close())
}

func TestAHomeIsUsedUp(t *testing.T) {
	h := open(t, Config{Identity: "me", Register: Own{}})
	if err := h.Used(Leases, ids.MaxNumber); !errors.Is(err, errs.ErrInvalid) {
		t.Errorf("got %v", err)
	}
	if err := h.Used(Leases, ids.Home(1).ID(5)); err != nil {
		t.Errorf("another home's: %v", err)
	}
}

func BenchmarkNext(b *testing.B) {
	h, err := Open(b.Context(), Config{Identity: "me", Register: Own{}})
	must(b, err)
	for b.Loop() {
		if _, err := h.Next(Clients); err != nil {
			b.Fatal(err)
		}
	}
}

// After Close nothing is given out, and the file is the next life's.
func TestAClosedHomeWritesNothing(t *testing.T) {
	cfg := config(t, t.TempDir())
	h := open(t, cfg)
	next(t, h, Jobs)
	must(t, h.Close())
	second := open(t, cfg)
	if n, err := h.Next(Jobs); !errors.Is(err, errs.ErrShutdown) {
		t.Errorf("it gives out %d, %v", n, err)
	}
	if err := h.Used(Leases, 1<<30); !errors.Is(err, errs.ErrShutdown) {
		t.Errorf("it notes: %v", err)
	}
	must(t, second.Close())
	if third := open(t, cfg); third.Epoch() != 3 || next(t, third, Jobs) != 2 {
		t.Errorf("then epoch %d", third.Epoch())
	}
}

// Logs of jobs without the file home are of a node that has given out ids, and nobody knows which.
func TestAMissingFileIsNoFirstLife(t *testing.T) {
	dir := t.TempDir()
	cfg := config(t, dir)
	must(t, open(t, cfg).Close())
	must(t, os.Remove(filepath.Join(dir, fileName)))
	cfg.LastJob = 3
	if _, err := Open(t.Context(), cfg); !errors.Is(err, errs.ErrInvalid) || !strings.Contains(err.Error(), "is missing") {
		t.Errorf("got %v", err)
	}
	cfg.LastJob = 0
	must(t, open(t, cfg).Close())
}
