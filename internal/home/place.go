package home

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// Place identifies a directory by a file in it that is written once: the file's inode and birth time, which differ in a copy.
type Place struct {
	Inode uint64 `json:"inode"`
	Born  int64  `json:"born,omitempty"` // Unix nanoseconds; 0: unknown
}

// placeOf is a file's place; the zero value if the inodes of the file system do not last.
func placeOf(path string) (Place, error) { return placeBy(unix.Statx, path) }

// placeBy is placeOf with the caller's statx.
func placeBy(statx func(dir int, path string, flags, mask int, st *unix.Statx_t) error, path string) (Place, error) {
	var fs unix.Statfs_t
	if err := unix.Statfs(path, &fs); err != nil {
		return Place{}, fmt.Errorf("statfs %s: %w", path, err)
	}
	if fs.Type == unix.FUSE_SUPER_MAGIC || fs.Type == unix.V9FS_MAGIC {
		return Place{}, nil
	}
	var st unix.Statx_t
	err := statx(unix.AT_FDCWD, path, unix.AT_SYMLINK_NOFOLLOW, unix.STATX_INO|unix.STATX_BTIME, &st)
	if errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EPERM) { // an old kernel, or a seccomp profile that does not know the call
		return unborn(path)
	}
	if err != nil {
		return Place{}, fmt.Errorf("statx %s: %w", path, err)
	}
	p := Place{Inode: st.Ino}
	if st.Mask&unix.STATX_BTIME != 0 {
		p.Born = st.Btime.Sec*1e9 + int64(st.Btime.Nsec)
	}
	return p, nil
}

// unborn is a file's place without its birth time, which only statx gives.
func unborn(path string) (Place, error) {
	var st unix.Stat_t
	if err := unix.Lstat(path, &st); err != nil {
		return Place{}, fmt.Errorf("lstat %s: %w", path, err)
	}
	return Place{Inode: st.Ino}, nil
}

// same tells whether two places may be the same; unknown fields do not distinguish them.
func (p Place) same(q Place) bool {
	return p.Inode == 0 || q.Inode == 0 || p.Inode == q.Inode && (p.Born == 0 || q.Born == 0 || p.Born == q.Born)
}
