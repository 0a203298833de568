package blobdir

import (
	"crypto/sha256"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"mobula/internal/errs"
)

func private(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "node", "blobs")
	return dir
}

func begin(t *testing.T, dir string, hash [32]byte, size uint64) *Part {
	t.Helper()
	p, err := Begin(dir, hash, size, 3)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func names(t *testing.T, dir string) (found []string) {
	t.Helper()
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		found = append(found, f.Name())
	}
	return found
}

// A blob has its name only when it is whole, with the mode that was asked for; and can be run at once.
func TestABlobIsStoredWhole(t *testing.T) {
	dir, data := private(t), []byte("#!/bin/sh\nexit 7\n")
	hash := sha256.Sum256(data)
	if have, err := Check(dir, hash); have || err != nil {
		t.Fatalf("before there is anything: %v, %v", have, err)
	}
	p := begin(t, dir, hash, uint64(len(data)))
	for _, at := range []int{10, 0} {
		if err := p.Write(uint64(at), data[at:min(at+10, len(data))]); err != nil {
			t.Fatal(err)
		}
	}
	if have, err := Check(dir, hash); have || err != nil {
		t.Fatalf("before it is stored: %v, %v", have, err)
	}
	if err := p.Store(0o500); err != nil {
		t.Fatal(err)
	}
	if have, err := Check(dir, hash); !have || err != nil {
		t.Fatalf("afterwards: %v, %v", have, err)
	}
	info, err := os.Stat(Path(dir, hash))
	if err != nil || info.Mode().Perm() != 0o500 {
		t.Errorf("its mode is %v, %v", info.Mode(), err)
	}
	if top, err := os.Stat(dir); err != nil || top.Mode().Perm() != 0o700 {
		t.Errorf("the directory's mode is %v, %v", top.Mode(), err)
	}
	if found := names(t, dir); len(found) != 1 {
		t.Errorf("there are %q", found)
	}
}

func TestWrongBytesAreRefused(t *testing.T) {
	dir := private(t)
	p := begin(t, dir, sha256.Sum256([]byte("right")), 5)
	if err := p.Write(0, []byte("wrong")); err != nil {
		t.Fatal(err)
	}
	if err := p.Store(0o500); !errors.Is(err, errs.ErrProtocol) {
		t.Errorf("they are stored: %v", err)
	}
	if found := names(t, dir); len(found) != 0 {
		t.Errorf("%q are left", found)
	}
}

// A later life finds what was stored and drops what was not finished; what has been changed since it removes.
func TestWhatWasLeftIsCheckedAgain(t *testing.T) {
	dir := private(t)
	good, bad := sha256.Sum256([]byte("good")), sha256.Sum256([]byte("bad!"))
	for hash, text := range map[[32]byte]string{good: "good", bad: "bad!"} {
		p := begin(t, dir, hash, 4)
		if err := p.Write(0, []byte(text)); err != nil {
			t.Fatal(err)
		}
		if err := p.Store(0o600); err != nil {
			t.Fatal(err)
		}
	}
	begin(t, dir, sha256.Sum256([]byte("half")), 4)
	if err := os.WriteFile(Path(dir, bad), []byte("evil"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "README"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := Touch(dir, good); err != nil {
		t.Fatal(err)
	}
	list, err := List(dir)
	if err != nil || len(list) != 2 {
		t.Fatalf("it finds %v, %v", list, err)
	}
	for _, e := range list {
		if e.Size != 4 || time.Since(time.Unix(0, e.Used)) > time.Hour {
			t.Errorf("it finds %+v", e)
		}
	}
	if found := names(t, dir); len(found) != 3 {
		t.Errorf("%q are left", found)
	}
	if have, err := Check(dir, good); !have || err != nil {
		t.Errorf("what is right: %v, %v", have, err)
	}
	if have, err := Check(dir, bad); have || err != nil {
		t.Errorf("what was changed: %v, %v", have, err)
	}
	if list, err := List(dir); err != nil || len(list) != 1 {
		t.Errorf("then it finds %v, %v", list, err)
	}
}

// A link that another has put in a blob's place is not followed.
func TestALinkIsRefused(t *testing.T) {
	dir := private(t)
	hash := sha256.Sum256([]byte("x"))
	begin(t, dir, hash, 1).Drop()
	if err := os.Symlink("/etc/passwd", Path(dir, hash)); err != nil {
		t.Fatal(err)
	}
	if have, err := Check(dir, hash); have || err == nil {
		t.Errorf("it is %v, %v", have, err)
	}
}
