package safefs

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"mobula/internal/errs"
)

// maxLinks is how many links a path may go through, as in the kernel.
const maxLinks = 40

// MakeDir makes the directory with mode 0700, and those above it, unless they exist. In both cases it checks that the directory
// is this user's own, and that nobody else can change or replace it.
func MakeDir(path string) error { return walk(path, walker{make: true, own: true}) }

// CheckDir is MakeDir for a directory that this project has made: it must exist, else the error is os.ErrNotExist, and must not
// be a link.
func CheckDir(path string) error { return walk(path, walker{own: true, noLink: true}) }

// MakeRoot is MakeDir for a directory that may be shared, like /tmp: nobody else may be able to change anything on the way to it.
func MakeRoot(path string) error { return walk(path, walker{make: true}) }

// CheckRoot is MakeRoot for a directory that must exist; if not, the error is os.ErrNotExist.
func CheckRoot(path string) error { return walk(path, walker{}) }

// walk goes down a path, one component at a time, by descriptors: it goes on from the directory that it has
// checked.
func walk(path string, w walker) error {
	abs, err := filepath.Abs(path)
	if err != nil {
		return err
	}
	w.left = components(abs)
	if err := w.root(); err != nil {
		return err
	}
	defer func() { _ = unix.Close(w.fd) }()
	for len(w.left) > 0 {
		if err := w.step(); err != nil {
			return err
		}
	}
	if !w.own {
		return nil
	}
	return check(w.fd, abs, unix.S_IFDIR)
}

func components(path string) []string {
	return strings.FieldsFunc(path, func(r rune) bool { return r == '/' })
}

type walker struct {
	make   bool // make directories that do not exist
	own    bool // the last must be this user's alone
	noLink bool // the last must not be a link

	fd     int    // of the directory it is in
	at     string // its path
	open   bool   // everybody may write to the directory
	shared bool   // or to one on the way to it
	left   []string
	links  int
}

func (w *walker) root() error {
	fd, err := open("/", unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return refused("/", err)
	}
	w.fd, w.at, w.open, w.shared = fd, "/", false, false
	return nil
}

// step goes into the next component.
func (w *walker) step() error {
	name := w.left[0]
	path := filepath.Join(w.at, name)
	if name == ".." || name == "." { // of a link's target
		return w.turn(path)
	}
	fd, err := unix.Openat(w.fd, name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if errors.Is(err, unix.ENOENT) && w.make {
		if err = unix.Mkdirat(w.fd, name, 0o700); err == nil || errors.Is(err, unix.EEXIST) {
			fd, err = unix.Openat(w.fd, name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		}
	}
	if err != nil {
		return &fs.PathError{Op: "open directory", Path: path, Err: err}
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		_ = unix.Close(fd) // only looked at
		return &fs.PathError{Op: "stat", Path: path, Err: err}
	}
	if st.Mode&unix.S_IFMT == unix.S_IFLNK {
		defer func() { _ = unix.Close(fd) }()
		return w.follow(fd, path, &st)
	}
	if err := w.judge(path, &st); err != nil {
		_ = unix.Close(fd) // only looked at
		return err
	}
	_ = unix.Close(w.fd) // likewise
	w.fd, w.at, w.left = fd, path, w.left[1:]
	w.open = st.Mode&0o002 != 0
	w.shared = w.shared || w.open
	return nil
}

// judge checks a directory: below a shared place it must be ours alone.
func (w *walker) judge(path string, st *unix.Stat_t) error {
	switch {
	case st.Mode&unix.S_IFMT != unix.S_IFDIR && (w.open || !trusted(st.Uid)):
		return inTheWay(path, kindOf(st.Mode), "a directory")
	case st.Mode&unix.S_IFMT != unix.S_IFDIR:
		return &fs.PathError{Op: "open directory", Path: path, Err: unix.ENOTDIR}
	case !w.shared:
		return nil
	case !trusted(st.Uid):
		return errs.New(errs.CodePermission, "%s, in a directory that everybody may write to, belongs to user %d, and this process runs as user %d: remove it, or choose another place",
			path, st.Uid, os.Geteuid())
	case st.Mode&0o022 != 0 && st.Mode&unix.S_ISVTX == 0:
		return errs.New(errs.CodePermission, "%s, in a directory that everybody may write to, can be written by others (mode %04o): run chmod go-w on it if nobody has, or choose another place",
			path, st.Mode&0o7777)
	}
	return nil
}

// follow goes through a link on the way, if nobody else can have put it there.
func (w *walker) follow(fd int, path string, st *unix.Stat_t) error {
	if w.noLink && len(w.left) == 1 {
		return inTheWay(path, "a symbolic link", "a directory")
	}
	if w.open || !trusted(st.Uid) {
		return errs.New(errs.CodePermission, "%s is a symbolic link of user %d's, where others may put one: remove it, or choose another place", path, st.Uid)
	}
	if w.links++; w.links > maxLinks {
		return &fs.PathError{Op: "open directory", Path: path, Err: unix.ELOOP}
	}
	buf := make([]byte, unix.PathMax)
	n, err := unix.Readlinkat(fd, "", buf)
	if err != nil {
		return &fs.PathError{Op: "readlink", Path: path, Err: err}
	}
	target := string(buf[:n])
	w.left = append(components(target), w.left[1:]...)
	if filepath.IsAbs(target) {
		_ = unix.Close(w.fd) // only looked at
		return w.root()
	}
	return nil
}

// turn handles "." and ".." in a link's target. A directory that was reached through a shared place still counts
// as such.
func (w *walker) turn(path string) error {
	name := w.left[0]
	fd, err := unix.Openat(w.fd, name, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return &fs.PathError{Op: "open directory", Path: path, Err: err}
	}
	var st unix.Stat_t
	err = unix.Fstat(fd, &st)
	_ = unix.Close(w.fd) // only looked at
	w.fd, w.at, w.left = fd, filepath.Clean(path), w.left[1:]
	w.open = st.Mode&0o002 != 0
	return err
}
