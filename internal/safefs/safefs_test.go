package safefs

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"mobula/internal/errs"
	"mobula/internal/testkit"
)

const stranger = 65533 // a user of the machine who is not us

// give makes a file or directory the stranger's.
func give(t *testing.T, path string) {
	t.Helper()
	if err := os.Lchown(path, stranger, stranger); err != nil {
		t.Fatal(err)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// place is a directory that everybody may write to, as /tmp is.
func place(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "tmp")
	must(t, os.Mkdir(dir, 0o700))
	must(t, unix.Chmod(dir, 0o1777))
	return dir
}

// soon fails the test where f waits for something: nothing here may.
func soon(t *testing.T, f func() error) error {
	t.Helper()
	done := make(chan error, 1)
	go func() { done <- f() }()
	return testkit.Receive(t, "its end", done)
}

func TestAFileInTheWayIsRefusedUntouched(t *testing.T) {
	for name, plant := range map[string]func(t *testing.T, path, victim string){
		"link":            func(t *testing.T, path, victim string) { must(t, os.Symlink(victim, path)) },
		"link to nothing": func(t *testing.T, path, victim string) { must(t, os.Symlink(victim+"x", path)) },
		"second name":     func(t *testing.T, path, victim string) { must(t, os.Link(victim, path)) },
		"FIFO":            func(t *testing.T, path, _ string) { must(t, unix.Mkfifo(path, 0o666)) },
		"directory":       func(t *testing.T, path, _ string) { must(t, os.Mkdir(path, 0o700)) },
		"another's":       func(t *testing.T, path, _ string) { must(t, os.WriteFile(path, []byte("x"), 0o600)); give(t, path) },
		"writable by all": func(t *testing.T, path, _ string) {
			must(t, os.WriteFile(path, nil, 0o600))
			must(t, os.Chmod(path, 0o666))
		},
		"a stranger's FIFO": func(t *testing.T, path, _ string) { must(t, unix.Mkfifo(path, 0o666)); give(t, path) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := place(t)
			victim := filepath.Join(t.TempDir(), "victim")
			must(t, os.WriteFile(victim, []byte("precious"), 0o600))
			path := filepath.Join(dir, "file")
			plant(t, path, victim)
			for _, flag := range []int{os.O_RDONLY, os.O_RDWR | os.O_CREATE, os.O_WRONLY | os.O_CREATE | os.O_TRUNC, os.O_WRONLY | os.O_APPEND | os.O_CREATE} {
				err := soon(t, func() error {
					f, err := OpenFile(path, flag, 0o600)
					if err == nil {
						_ = f.Close()
					}
					return err
				})
				if !errors.Is(err, errs.ErrPermission) || !strings.Contains(err.Error(), path) {
					if name == "directory" && err != nil {
						continue // the system's own words serve
					}
					t.Errorf("open %#x: %v", flag, err)
				}
			}
			if b, err := os.ReadFile(victim); err != nil || string(b) != "precious" {
				t.Errorf("the victim has %q now (%v)", b, err)
			}
			if Exists(victim + "x") {
				t.Error("a file was made at the end of the link")
			}
		})
	}
}

func TestAFileOfOursIsOpenedAsEver(t *testing.T) {
	path := filepath.Join(place(t), "file")
	if _, err := OpenFile(path, os.O_RDWR, 0); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("one that is not there: %v", err)
	}
	must(t, WriteFile(path, []byte("a longer text"), 0o600))
	must(t, WriteFile(path, []byte("short"), 0o600))
	if b, err := ReadFile(path); err != nil || string(b) != "short" {
		t.Errorf("read %q, %v", b, err)
	}
	must(t, Rewrite(path, []byte("new")))
	f, err := OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	must(t, err)
	defer func() { _ = f.Close() }()
	flags, err := unix.FcntlInt(f.Fd(), unix.F_GETFL, 0)
	if err != nil || flags&unix.O_NONBLOCK != 0 {
		t.Errorf("flags %#x, %v", flags, err)
	}
	if _, err := OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600); !errors.Is(err, os.ErrExist) {
		t.Errorf("exclusively: %v", err)
	}
	if !IsAt(f, path) {
		t.Error("the file is not at its name")
	}
	must(t, os.Remove(path))
	if IsAt(f, path) {
		t.Error("the file is at a name it lost")
	}
}

func TestADirectoryInASharedPlaceIsOursAlone(t *testing.T) {
	tmp := place(t)
	must(t, MakeDir(filepath.Join(tmp, "mobula-0", "default", "logs")))
	must(t, CheckDir(filepath.Join(tmp, "mobula-0", "default", "logs")))
	if st, err := os.Stat(filepath.Join(tmp, "mobula-0")); err != nil || st.Mode().Perm() != 0o700 {
		t.Errorf("made with %v, %v", st.Mode(), err)
	}
	if err := CheckDir(filepath.Join(tmp, "none")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("one that is not there: %v", err)
	}
	own := filepath.Join(t.TempDir(), "own")
	must(t, os.Mkdir(own, 0o700))
	for name, plant := range map[string]func(path string){
		"link":            func(path string) { must(t, os.Symlink(own, path)) },
		"stranger's link": func(path string) { must(t, os.Symlink(own, path)); give(t, path) },
		"another's":       func(path string) { must(t, os.Mkdir(path, 0o777)); give(t, path) },
		"open to all":     func(path string) { must(t, os.Mkdir(path, 0o700)); must(t, os.Chmod(path, 0o777)) },
		"FIFO":            func(path string) { must(t, unix.Mkfifo(path, 0o666)) },
	} {
		path := filepath.Join(tmp, name)
		plant(path)
		for _, dir := range []string{path, filepath.Join(path, "below")} {
			if err := soon(t, func() error { return MakeDir(dir) }); !errors.Is(err, errs.ErrPermission) || !strings.Contains(err.Error(), path) {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	if Exists(filepath.Join(own, "below")) {
		t.Error("a directory was made at the end of a link")
	}
}

// Where nobody else may write, links are the user's.
func TestLinksOfTheUsersOwnAreFollowed(t *testing.T) {
	dir := t.TempDir()
	must(t, os.Mkdir(filepath.Join(dir, "disk"), 0o700))
	must(t, os.Symlink("disk", filepath.Join(dir, "relative")))
	must(t, os.Symlink(filepath.Join(dir, "relative"), filepath.Join(dir, "absolute")))
	must(t, os.Symlink("./disk/../absolute", filepath.Join(dir, "dots")))
	must(t, MakeDir(filepath.Join(dir, "dots", "spill")))
	if !Exists(filepath.Join(dir, "disk", "spill")) {
		t.Error("it was made elsewhere")
	}
	must(t, os.Symlink("loop", filepath.Join(dir, "loop")))
	if err := MakeDir(filepath.Join(dir, "loop", "x")); err == nil {
		t.Error("a loop was followed")
	}
	planted := filepath.Join(dir, "planted")
	must(t, os.Symlink("disk", planted))
	give(t, planted)
	if err := MakeDir(filepath.Join(planted, "x")); !errors.Is(err, errs.ErrPermission) {
		t.Errorf("a stranger's link: %v", err)
	}
}

func TestASharedRootServesItself(t *testing.T) {
	tmp := place(t)
	must(t, MakeRoot(tmp))
	if err := MakeDir(tmp); !errors.Is(err, errs.ErrPermission) {
		t.Errorf("a place for everybody as a directory of ours: %v", err)
	}
}
