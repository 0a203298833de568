package home

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// Where statx is refused the place is the inode alone: it tells a copy, and is the same as the whole place of the same file.
func TestAPlaceWithoutStatx(t *testing.T) {
	dir := t.TempDir()
	file, copied := filepath.Join(dir, "identity"), filepath.Join(dir, "copy")
	for _, path := range []string{file, copied} {
		if err := os.WriteFile(path, []byte("me\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	whole, err := placeOf(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, why := range []error{unix.ENOSYS, unix.EPERM} {
		refused := func(int, string, int, int, *unix.Statx_t) error { return why }
		p, err := placeBy(refused, file)
		if err != nil || p.Inode == 0 && whole.Inode != 0 || p.Born != 0 || !p.same(whole) || !whole.same(p) {
			t.Errorf("%v: %+v, %v, beside %+v", why, p, err, whole)
		}
		if q, err := placeBy(refused, copied); err != nil || whole.Inode != 0 && p.same(q) {
			t.Errorf("%v: a copy is at %+v, %v", why, q, err)
		}
	}
	if _, err := placeBy(func(int, string, int, int, *unix.Statx_t) error { return unix.EIO }, file); !errors.Is(err, unix.EIO) {
		t.Errorf("another error: %v", err)
	}
	if _, err := placeBy(unix.Statx, filepath.Join(dir, "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
}
