package segment

import (
	"bufio"
	"bytes"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Memory tells how many more bytes may be put behind a file, and what sets that bound.
type Memory func(f *os.File) (free uint64, bound string)

// Available is the least of: the kernel's estimate of available memory, the free space of
// the file's tmpfs, and what the process's cgroup (v1 or v2) and its parents allow. A
// source that cannot be read sets no bound.
func Available(f *os.File) (uint64, string) {
	return probe{proc: "/proc", cgroup: "/sys/fs/cgroup"}.available(f)
}

// probe reads the sources below the given roots; tests give their own.
type probe struct{ proc, cgroup string }

func (p probe) available(f *os.File) (uint64, string) {
	free, bound := uint64(math.MaxUint64), "no known bound"
	take := func(n uint64, ok bool, what string) {
		if ok && n < free {
			free, bound = n, what
		}
	}
	n, ok := p.memAvailable()
	take(n, ok, "MemAvailable of /proc/meminfo")
	n, ok = tmpfsFree(f)
	take(n, ok, "the tmpfs of "+f.Name())
	n, ok = p.cgroupFree()
	take(n, ok, "the memory limit of the cgroup")
	return free, bound
}

func (p probe) memAvailable() (uint64, bool) {
	b, err := os.ReadFile(filepath.Join(p.proc, "meminfo"))
	if err != nil {
		return 0, false
	}
	n, ok := field(b, "MemAvailable:")
	return n << 10, ok
}

// field is the number that follows a name at the start of a line.
func field(text []byte, name string) (uint64, bool) {
	sc := bufio.NewScanner(bytes.NewReader(text))
	for sc.Scan() {
		fs := strings.Fields(sc.Text())
		if len(fs) >= 2 && fs[0] == name {
			n, err := strconv.ParseUint(fs[1], 10, 64)
			return n, err == nil
		}
	}
	return 0, false
}

// tmpfsFree is the free space of the file's file system if that has a size at all: a memfd's has none.
func tmpfsFree(f *os.File) (uint64, bool) {
	var st unix.Statfs_t
	if f == nil || unix.Fstatfs(int(f.Fd()), &st) != nil || st.Blocks == 0 {
		return 0, false
	}
	return st.Bavail * uint64(st.Bsize), true
}

// cgroupFree is the least room in the process's cgroup and its ancestors; page cache that
// the kernel would drop first counts as room.
func (p probe) cgroupFree() (uint64, bool) {
	b, err := os.ReadFile(filepath.Join(p.proc, "self", "cgroup"))
	if err != nil {
		return 0, false
	}
	free, found := uint64(math.MaxUint64), false
	for line := range strings.Lines(string(b)) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) != 3 {
			continue
		}
		root, files := p.cgroup, v2
		if parts[1] != "" {
			if !strings.Contains(","+parts[1]+",", ",memory,") {
				continue
			}
			root, files = filepath.Join(p.cgroup, "memory"), v1
		}
		// In a container the path may name a group above the mount: then only the root is there.
		for dir := filepath.Clean("/" + parts[2]); ; dir = filepath.Dir(dir) {
			if n, ok := files.free(filepath.Join(root, dir)); ok && n < free {
				free, found = n, true
			}
			if dir == "/" {
				break
			}
		}
	}
	return free, found
}

type cgroupFiles struct{ max, current, cache string }

var (
	v2 = cgroupFiles{"memory.max", "memory.current", "inactive_file"}
	v1 = cgroupFiles{"memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"}
)

func (c cgroupFiles) free(dir string) (uint64, bool) {
	limit, ok := number(filepath.Join(dir, c.max)) // "max" is no number: no bound
	if !ok {
		return 0, false
	}
	used, ok := number(filepath.Join(dir, c.current))
	if !ok {
		return 0, false
	}
	if stat, err := os.ReadFile(filepath.Join(dir, "memory.stat")); err == nil {
		cache, _ := field(stat, c.cache)
		used -= min(cache, used)
	}
	return limit - min(used, limit), true
}

func number(path string) (uint64, bool) {
	b, err := os.ReadFile(path)
	if err != nil {
		return 0, false
	}
	n, err := strconv.ParseUint(strings.TrimSpace(string(b)), 10, 64)
	return n, err == nil
}
