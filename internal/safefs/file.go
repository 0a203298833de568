package safefs

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"mobula/internal/errs"
)

// OpenFile is os.OpenFile for a file of this user: see the package's documentation.
func OpenFile(path string, flag int, perm os.FileMode) (*os.File, error) {
	const careful = unix.O_NOFOLLOW | unix.O_NONBLOCK | unix.O_NOCTTY | unix.O_CLOEXEC
	fd, err := open(path, flag&^os.O_TRUNC|careful, perm)
	if err != nil {
		return nil, refused(path, err)
	}
	if err = check(fd, path, unix.S_IFREG); err == nil {
		err = settle(fd, flag)
	}
	if err != nil {
		_ = unix.Close(fd) // it was not used
		return nil, err
	}
	return os.NewFile(uintptr(fd), path), nil
}

func open(path string, flag int, perm os.FileMode) (int, error) {
	for {
		fd, err := unix.Open(path, flag, uint32(perm.Perm()))
		if !errors.Is(err, unix.EINTR) {
			return fd, err
		}
	}
}

// settle applies the flags to the descriptor, once it is known to be of the right file.
func settle(fd, flag int) error {
	now, err := unix.FcntlInt(uintptr(fd), unix.F_GETFL, 0)
	if err == nil && flag&unix.O_NONBLOCK == 0 {
		_, err = unix.FcntlInt(uintptr(fd), unix.F_SETFL, now&^unix.O_NONBLOCK)
	}
	if err == nil && flag&os.O_TRUNC != 0 {
		err = unix.Ftruncate(fd, 0)
	}
	return err
}

// ReadFile is os.ReadFile for a file of this user.
func ReadFile(path string) ([]byte, error) {
	f, err := OpenFile(path, os.O_RDONLY, 0)
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(f)
	return data, errors.Join(err, f.Close())
}

// WriteFile writes a file of this user atomically: a reader finds the whole old file or the whole new one.
func WriteFile(path string, data []byte, perm os.FileMode) error {
	return swap(path, data, perm, func(*os.File) error { return nil })
}

// Replace is WriteFile for files that must survive a crash of the machine: it returns when the new file is on
// disk.
func Replace(path string, data []byte) error {
	if err := swap(path, data, 0o600, (*os.File).Sync); err != nil {
		return err
	}
	d, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// swap writes a new file beside the one at path, calls flush on it, and renames it to path.
func swap(path string, data []byte, perm os.FileMode, flush func(*os.File) error) error {
	f, err := OpenFile(path+".new", os.O_WRONLY|os.O_CREATE|os.O_TRUNC, perm)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err = errors.Join(err, flush(f), f.Close()); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

// Rewrite writes a file of this user in place, so that a lock on it stays valid.
func Rewrite(path string, data []byte) error {
	f, err := OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return errors.Join(err, f.Close())
}

// check checks an opened file: it must be of this user or root, not writable by others, and of the given kind.
func check(fd int, path string, kind uint32) error {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return &fs.PathError{Op: "stat", Path: path, Err: err}
	}
	switch {
	case st.Mode&unix.S_IFMT != kind:
		return inTheWay(path, kindOf(st.Mode), kindOf(kind))
	case !trusted(st.Uid):
		return errs.New(errs.CodePermission, "%s belongs to user %d, and this process runs as user %d: remove it, or choose another place", path, st.Uid, os.Geteuid())
	case st.Mode&0o022 != 0:
		return errs.New(errs.CodePermission, "%s can be written by others (mode %04o): run chmod go-w on it if nobody has, or choose another place", path, st.Mode&0o7777)
	case kind == unix.S_IFREG && st.Nlink > 1:
		return errs.New(errs.CodePermission, "%s is a file with %d names, of which the others may be anywhere: remove it, or choose another place", path, st.Nlink)
	}
	return nil
}

// trusted tells whether to trust files of a user.
func trusted(uid uint32) bool { return uid == 0 || uid == uint32(os.Geteuid()) }

func inTheWay(path, found, want string) error {
	return errs.New(errs.CodePermission, "%s is %s, and not %s: remove it, or choose another place", path, found, want)
}

// refused turns errors of open about something in the way into ours, and adds the path to others.
func refused(path string, err error) error {
	switch {
	case errors.Is(err, unix.ELOOP):
		return inTheWay(path, "a symbolic link", "a file or directory of this user's")
	case errors.Is(err, unix.ENXIO), errors.Is(err, unix.ENODEV), errors.Is(err, unix.EOPNOTSUPP):
		return inTheWay(path, found(path), "a regular file")
	case errors.Is(err, unix.EACCES), errors.Is(err, unix.EPERM): // from fs.protected_regular and fs.protected_fifos
		var st unix.Stat_t
		if unix.Lstat(path, &st) == nil && !trusted(st.Uid) {
			return errs.New(errs.CodePermission, "%s is %s of user %d, and this process runs as user %d: remove it, or choose another place",
				path, kindOf(st.Mode), st.Uid, os.Geteuid())
		}
	}
	return &fs.PathError{Op: "open", Path: path, Err: err}
}

func found(path string) string {
	var st unix.Stat_t
	if unix.Lstat(path, &st) != nil {
		return "no regular file"
	}
	return kindOf(st.Mode)
}

func kindOf(mode uint32) string {
	switch mode & unix.S_IFMT {
	case unix.S_IFREG:
		return "a regular file"
	case unix.S_IFDIR:
		return "a directory"
	case unix.S_IFLNK:
		return "a symbolic link"
	case unix.S_IFIFO:
		return "a FIFO"
	case unix.S_IFSOCK:
		return "a socket"
	}
	return fmt.Sprintf("a device (mode %#o)", mode)
}

// IsAt tells whether the file still has the name, and was not removed or replaced meanwhile.
func IsAt(f *os.File, path string) bool {
	a, errA := f.Stat()
	b, errB := os.Lstat(path)
	return errA == nil && errB == nil && os.SameFile(a, b)
}

// Exists tells whether anything has the name, even a dangling link.
func Exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// ReadDir lists a directory, which must not be a link.
func ReadDir(path string) ([]os.DirEntry, error) {
	fd, err := open(filepath.Clean(path), unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, refused(path, err)
	}
	f := os.NewFile(uintptr(fd), path)
	entries, err := f.ReadDir(-1)
	return entries, errors.Join(err, f.Close())
}
