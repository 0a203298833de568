package shell

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"mobula/actors"
	"mobula/internal/ids"
	"mobula/internal/testkit"
	"mobula/objectstore/spill"
	"mobula/objectstore/spill/storage/storagetest"
)

func TestMain(m *testing.M) {
	if run := os.Getenv(childEnv); run != "" {
		os.Exit(child(run))
	}
	goleak.VerifyTestMain(m)
}

// diskDir is a directory next to the sources: the system's temporary one may be memory.
func diskDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp(".", "testdata-spill-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	abs, err := filepath.Abs(dir)
	if err != nil {
		t.Fatal(err)
	}
	return abs
}

func open(t testing.TB, change func(*Config)) *Spiller {
	t.Helper()
	return openIn(t, nil, change)
}

// openIn is open in a tree of the test's.
func openIn(t testing.TB, parent actors.Parent, change func(*Config)) *Spiller {
	t.Helper()
	cfg := Default("test")
	cfg.MinFileBytes = 1 << 20
	if change != nil {
		change(&cfg)
	}
	if len(cfg.URLs) == 0 && cfg.Dir == Default("").Dir {
		cfg.Dir = diskDir(t)
	}
	s, err := Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { shut(t, s) })
	if err := s.Start(parent); err != nil {
		t.Fatal(err)
	}
	return s
}

func shut(t testing.TB, s *Spiller) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), testkit.Patience())
	defer cancel()
	if err := s.Close(ctx); err != nil {
		t.Errorf("close: %v", err)
	}
	if n := s.bufs.Lent(); n != 0 {
		t.Errorf("%d buffers were not given back", n)
	}
}

type written struct {
	locs []spill.Location
	err  error
}

func writeLater(s *Spiller, items []spill.Item) <-chan written {
	out := make(chan written, 2)
	s.Write(items, func(locs []spill.Location, err error) { out <- written{locs, err} })
	return out
}

func mustWrite(t testing.TB, s *Spiller, items []spill.Item) []spill.Location {
	t.Helper()
	w := testkit.Receive(t, "write", writeLater(s, items))
	if w.err != nil {
		t.Fatalf("write: %v", w.err)
	}
	return w.locs
}

func readLater(s *Spiller, l spill.Location, dst []byte) <-chan error {
	out := make(chan error, 2)
	s.Read(l, dst, func(err error) { out <- err })
	return out
}

func mustRead(t testing.TB, s *Spiller, l spill.Location, want []byte) {
	t.Helper()
	dst := storagetest.Pages(int(l.Size))
	if err := testkit.Receive(t, "read", readLater(s, l, dst)); err != nil {
		t.Fatalf("read %+v: %v", l, err)
	}
	if !bytes.Equal(dst, want) {
		t.Fatalf("read %+v: other bytes than were written", l)
	}
}

func items(n, size int) []spill.Item {
	sizes := make([]int, n)
	for i := range sizes {
		sizes[i] = size
	}
	return storagetest.Objects(sizes...)
}

// soon asks until it is so, and tells whether it was before the patience ended: for the process that has no test.
func soon(ok func() bool) bool {
	for end := time.Now().Add(testkit.Patience()); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			return false
		}
	}
	return true
}

func spillFiles(t testing.TB, dir string) []string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "mobula-test", "*.spill"))
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// lines is a logger's output, counted.
type lines struct {
	mu  sync.Mutex
	all []string
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, string(p))
	return len(p), nil
}

func (l *lines) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.all)
}

func (l *lines) logger() *slog.Logger { return slog.New(slog.NewTextHandler(l, nil)) }

func object(n uint64) ids.ObjectID { return ids.Derive(ids.RootTask(1, 1), n).Return(0) }
