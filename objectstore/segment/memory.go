package segment

import (
	"os"

	"golang.org/x/sys/unix"

	"mobula/internal/memstat"
)

// Memory tells how many more bytes of memory a file may get, and what sets that bound.
type Memory func(f *os.File) (free uint64, bound string)

// Available is the least of what the machine and the process' cgroups have available and the free space of the file's tmpfs.
func Available(f *os.File) (uint64, string) {
	free, bound := memstat.Available(os.DirFS("/"))
	if n, ok := tmpfsFree(f); ok && n < free {
		return n, "the tmpfs of " + f.Name()
	}
	return free, bound
}

// tmpfsFree is the free space of the file's file system if that has a size at all: a memfd's has none.
func tmpfsFree(f *os.File) (uint64, bool) {
	var st unix.Statfs_t
	if f == nil || unix.Fstatfs(int(f.Fd()), &st) != nil || st.Blocks == 0 {
		return 0, false
	}
	return st.Bavail * uint64(st.Bsize), true
}
