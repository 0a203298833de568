package disk

import (
	"context"
	"errors"
	"net/url"
	"os"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"mobula/objectstore/spill/format"
	"mobula/objectstore/spill/storage"
	"mobula/objectstore/spill/storage/storagetest"
)

func TestMain(m *testing.M) {
	if run := os.Getenv(childEnv); run != "" {
		os.Exit(child(run))
	}
	goleak.VerifyTestMain(m)
}

func openAt(t *testing.T, dir, query, session string, bufs *storage.Buffers) *Store {
	t.Helper()
	s, err := storage.Open(context.Background(), &url.URL{Scheme: "file", Path: dir, RawQuery: query}, storage.Options{Session: session, Buffers: bufs})
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	t.Cleanup(func() { _ = s.Close(true) })
	return s.(*Store)
}

func TestConformance(t *testing.T) {
	for _, mode := range []string{"direct=true", "direct=false"} {
		t.Run(mode, func(t *testing.T) {
			var dir string
			storagetest.Run(t, storagetest.Subject{
				Open: func(t *testing.T, session string, bufs *storage.Buffers) storage.Storage {
					if session == "one" {
						dir = diskDir(t)
					}
					return openAt(t, dir, mode, session, bufs)
				},
				Damage: func(t *testing.T, s storage.Storage, file uint64, change func([]byte) []byte) {
					path := s.(*Store).path(file)
					p, err := os.ReadFile(path)
					if err != nil {
						t.Fatal(err)
					}
					if err := os.WriteFile(path, change(p), 0o600); err != nil {
						t.Fatal(err)
					}
				},
			})
		})
	}
}

// diskDir is a directory next to the sources: the system's temporary one may be memory.
func diskDir(t testing.TB) string {
	dir, err := os.MkdirTemp(".", "testdata-disk-")
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

func TestOptionsAreChecked(t *testing.T) {
	for _, q := range []string{"direct=maybe", "mode=fast"} {
		_, err := storage.Open(context.Background(), &url.URL{Scheme: "file", Path: t.TempDir(), RawQuery: q}, storage.Options{Session: "s"})
		if err == nil {
			t.Errorf("option %q was taken", q)
		}
	}
}

func TestBufferedIOLeavesNoPagesBehind(t *testing.T) {
	bufs := storage.NewBuffers(2)
	defer bufs.Trim()
	s := openAt(t, diskDir(t), "direct=false", "s", bufs)
	objs := storagetest.Objects(20<<20, 3000)
	st := format.NewStream(format.Header{Session: "s", File: 1}, objs, bufs)
	if err := s.Put(context.Background(), 1, st); err != nil {
		t.Fatal(err)
	}
	if n := resident(t, s.path(1)); n > 64 {
		t.Errorf("after a write %d pages are cached", n)
	}
	if _, err := s.Read(context.Background(), 1, st.Entries()[0].Off, make([]byte, 20<<20)); err != nil {
		t.Fatal(err)
	}
	if n := resident(t, s.path(1)); n > 64 { // readahead past the object may remain
		t.Errorf("after a read %d pages are cached", n)
	}
}

// resident counts a file's pages in the page cache.
func resident(t *testing.T, path string) int {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	m, err := unix.Mmap(int(f.Fd()), 0, int(info.Size()), unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Munmap(m)
	vec := make([]byte, len(m)/format.Page)
	if err := mincore(m, vec); err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, v := range vec {
		n += int(v & 1)
	}
	return n
}

func TestMappedFiles(t *testing.T) {
	bufs := storage.NewBuffers(1)
	defer bufs.Trim()
	s := openAt(t, diskDir(t), "", "s", bufs)
	f, err := s.Allocate(3 << 20)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil || st.Size != 3<<20 || st.Blocks*512 < 3<<20 {
		t.Errorf("the file has %d bytes and %d blocks, %v: it must be reserved", st.Size, st.Blocks, err)
	}
	if _, err := f.WriteAt([]byte("kept"), 100); err != nil {
		t.Fatal(err)
	}
	again, err := s.Reopen(f.Name())
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	var b [4]byte
	if _, err := again.ReadAt(b[:], 100); err != nil || string(b[:]) != "kept" {
		t.Errorf("reopened file reads %q, %v", b, err)
	}
	if all, err := s.Allocated(); err != nil || len(all) != 1 || all[0] != f.Name() {
		t.Errorf("allocated: %v, %v", all, err)
	}
	for range 2 {
		if err := s.Unlink(f.Name()); err != nil {
			t.Errorf("unlink: %v", err)
		}
	}
	if _, err := os.Stat(f.Name()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("unlinked file: %v", err)
	}
	for _, path := range []string{"/etc/passwd", filepath.Join(s.dir, lockName)} {
		if _, err := s.Reopen(path); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("reopen %s: %v", path, err)
		}
		if err := s.Unlink(path); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("unlink %s: %v", path, err)
		}
	}
}
