package memstat

import (
	"bytes"
	"fmt"
	"io/fs"
	"math"
	"strconv"
	"strings"
)

// usage is the used bytes and their limit.
type usage struct{ used, limit uint64 }

func (u usage) free() uint64 { return u.limit - min(u.used, u.limit) }

// share is the used share.
func (u usage) share() float64 { return float64(u.used) / float64(u.limit) }

// Available is how many more bytes may be taken: the lesser of the kernel's estimate of available memory and what the cgroup and
// those above it allow. It also says what sets that bound. A source that cannot be read sets none.
func Available(root fs.FS) (free uint64, bound string) {
	free, bound = math.MaxUint64, "no known bound"
	if text, err := fs.ReadFile(root, "proc/meminfo"); err == nil {
		if kib, ok := field(text, "MemAvailable:"); ok {
			free, bound = kib<<10, "MemAvailable of /proc/meminfo"
		}
	}
	cgroups(root, func(u usage) {
		if u.free() < free {
			free, bound = u.free(), "the memory limit of the cgroup"
		}
	})
	return free, bound
}

// machine is the machine's memory.
func machine(root fs.FS) (usage, error) {
	text, err := fs.ReadFile(root, "proc/meminfo")
	if err != nil {
		return usage{}, err
	}
	total, _ := field(text, "MemTotal:")
	free, _ := field(text, "MemAvailable:")
	if total == 0 || free > total {
		return usage{}, fmt.Errorf("proc/meminfo: MemTotal %d, MemAvailable %d: not plausible", total, free)
	}
	return usage{(total - free) << 10, total << 10}, nil
}

// controller is how a version of cgroups names its files.
type controller struct{ root, limit, used, cache string }

var (
	v2 = controller{"sys/fs/cgroup", "memory.max", "memory.current", "inactive_file"}
	v1 = controller{"sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"}
)

// cgroups visits each cgroup of the process, on the way up, that has a limit. In a container the path may name a group above what is
// mounted: then only the root is there.
func cgroups(root fs.FS, visit func(usage)) {
	text, err := fs.ReadFile(root, "proc/self/cgroup")
	if err != nil {
		return
	}
	for line := range strings.Lines(string(text)) {
		part := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(part) != 3 {
			continue
		}
		c := v2
		switch {
		case part[0] == "0" && part[1] == "":
		case strings.Contains(","+part[1]+",", ",memory,"):
			c = v1
		default:
			continue
		}
		for dir := strings.Trim(part[2], "/"); ; dir = dir[:max(strings.LastIndexByte(dir, '/'), 0)] {
			at := c.root
			if dir != "" {
				at += "/" + dir
			}
			if u, ok := c.read(root, at); ok {
				visit(u)
			}
			if dir == "" {
				break
			}
		}
	}
}

// read reads one directory; false if it has no limit.
func (c controller) read(root fs.FS, dir string) (usage, bool) {
	limit, ok := number(root, dir+"/"+c.limit) // "max" is no number
	if !ok || limit == 0 || limit >= 1<<62 {
		return usage{}, false
	}
	used, ok := number(root, dir+"/"+c.used)
	if !ok {
		return usage{}, false
	}
	if text, err := fs.ReadFile(root, dir+"/memory.stat"); err == nil {
		cache, _ := field(text, c.cache)
		used -= min(cache, used)
	}
	return usage{used, limit}, true
}

// field is the number that follows a name at the start of a line.
func field(text []byte, name string) (uint64, bool) {
	for line := range bytes.Lines(text) {
		if len(line) <= len(name) || string(line[:len(name)]) != name || line[len(name)] > ' ' {
			continue
		}
		words := bytes.Fields(line[len(name):])
		if len(words) == 0 {
			return 0, false
		}
		n, err := strconv.ParseUint(string(words[0]), 10, 64)
		return n, err == nil
	}
	return 0, false
}

// number reads a file that has only a number in it.
func number(root fs.FS, path string) (uint64, bool) {
	text, err := fs.ReadFile(root, path)
	if err != nil {
		return 0, false
	}
	n, err := strconv.ParseUint(string(bytes.TrimSpace(text)), 10, 64)
	return n, err == nil
}
