package memmon

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"
	"time"
)

// Sampler reads the node's memory from /proc and the cgroup. FS is the root directory, os.DirFS("/")
// outside of tests, and Clock the time, time.Now without one. It is not safe for concurrent use.
type Sampler struct {
	FS    fs.FS
	Clock func() time.Time

	shares map[int]*share // by process
	seen   []usage        // by the last Node: the machine's, and that of each cgroup with a limit
}

type usage struct{ used, limit uint64 }

// share is what a process' smaps told. To read it the kernel walks every page that the process has mapped, tens of milliseconds
// for a gigabyte of the segment: so it is read once in rest times as long as that took, and what has
// become of it since is known by the process' anonymous memory, which the kernel counts.
type share struct {
	bytes, anon uint64 // when it was read
	again       time.Time
	used        bool // since the last sample of the node
}

// rest is how much longer than reading a process' smaps takes it is not read again: half a percent of a CPU.
const rest = 200

// Node gives what is used of the narrower of machine and cgroup (v2 or v1). Processes that were not asked for since the last
// time are forgotten.
func (s *Sampler) Node() (used, limit uint64, source string, err error) {
	for pid, sh := range s.shares {
		if !sh.used {
			delete(s.shares, pid)
		}
		sh.used = false
	}
	info, err := s.fields("proc/meminfo", ":")
	if err != nil {
		return 0, 0, "", err
	}
	total, avail := info["MemTotal"]<<10, info["MemAvailable"]<<10
	if total == 0 || avail > total {
		return 0, 0, "", fmt.Errorf("proc/meminfo: MemTotal %d, MemAvailable %d: not plausible", total, avail)
	}
	used, limit, source = total-avail, total, "node"
	s.seen = append(s.seen[:0], usage{used, limit})
	if u, l, ok := s.cgroup(); ok && l > 0 && l < total && float64(u)/float64(l) > float64(used)/float64(limit) {
		return u, l, "cgroup", nil
	}
	return used, limit, source, nil
}

// Room is what was left, at the last Node, below that fraction of a limit, where it was least: the machine's or a cgroup's.
func (s *Sampler) Room(fraction float64) uint64 {
	room := ^uint64(0)
	for _, u := range s.seen {
		below := uint64(fraction * float64(u.limit))
		room = min(room, below-min(u.used, below))
	}
	return room
}

// Total is the memory that there is at most, in bytes: the machine's, or the least limit of the
// process' cgroup (v2 or v1) and of those above it.
func (s *Sampler) Total() (uint64, error) {
	info, err := s.fields("proc/meminfo", ":")
	if err != nil {
		return 0, err
	}
	total := info["MemTotal"] << 10
	if total == 0 {
		return 0, fmt.Errorf("proc/meminfo has no MemTotal")
	}
	s.levels(func(_, limit uint64) { total = min(total, limit) })
	return total, nil
}

// cgroup gives what is used of the process' cgroup; page cache that could be dropped is not used. The
// limit that counts is the narrowest on the way up.
func (s *Sampler) cgroup() (used, limit uint64, ok bool) {
	s.levels(func(u, l uint64) {
		s.seen = append(s.seen, usage{u, l})
		if !ok || float64(u)/float64(l) > float64(used)/float64(limit) {
			used, limit, ok = u, l, true
		}
	})
	return used, limit, ok
}

// levels calls f for each cgroup on the way up that has a limit.
func (s *Sampler) levels(f func(used, limit uint64)) {
	raw, err := fs.ReadFile(s.FS, "proc/self/cgroup")
	if err != nil {
		return
	}
	for line := range strings.Lines(string(raw)) {
		part := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(part) != 3 {
			continue
		}
		root, cur, most, inactive := "sys/fs/cgroup", "memory.current", "memory.max", "inactive_file"
		switch {
		case part[0] == "0" && part[1] == "":
		case part[1] == "memory" || strings.Contains(","+part[1]+",", ",memory,"):
			root, cur, most, inactive = "sys/fs/cgroup/memory", "memory.usage_in_bytes", "memory.limit_in_bytes", "total_inactive_file"
		default:
			continue
		}
		for dir := strings.Trim(part[2], "/"); ; {
			at := root
			if dir != "" {
				at += "/" + dir
			}
			if l, u, found := s.level(at, cur, most, inactive); found {
				f(u, l)
			}
			if dir == "" {
				break
			}
			dir = dir[:max(strings.LastIndexByte(dir, '/'), 0)]
		}
	}
}

// level reads one directory of the cgroup tree; it is found only where it has a limit.
func (s *Sampler) level(dir, cur, most, inactive string) (limit, used uint64, found bool) {
	limit, err := s.number(dir + "/" + most) // "max" is no number
	if err != nil || limit == 0 || limit >= 1<<62 {
		return 0, 0, false
	}
	used, err = s.number(dir + "/" + cur)
	if err != nil {
		return 0, 0, false
	}
	if stat, err := s.fields(dir+"/memory.stat", ""); err == nil && stat[inactive] < used {
		used -= stat[inactive]
	}
	return limit, used, true
}

// Process gives the bytes that a process would free by its end: its private memory and its share of the
// files it maps, without shared memory, which is the object store's segment. Where smaps cannot be read, its resident anonymous memory.
func (s *Sampler) Process(pid int) (uint64, error) {
	dir := "proc/" + strconv.Itoa(pid)
	status, err := s.fields(dir+"/status", ":")
	if err != nil {
		return 0, err
	}
	anon, begun := status["RssAnon"]<<10, s.now()
	if sh := s.shares[pid]; sh != nil && begun.Before(sh.again) {
		sh.used = true
		return sh.bytes + anon - min(sh.anon, sh.bytes+anon), nil
	}
	roll, err := s.fields(dir+"/smaps_rollup", ":")
	if errors.Is(err, fs.ErrNotExist) {
		return 0, err
	}
	if err != nil {
		return anon, nil
	}
	end := s.now()
	sh := &share{bytes: (roll["Pss"] - min(roll["Pss"], roll["Pss_Shmem"])) << 10, anon: anon, again: end.Add(rest * end.Sub(begun)), used: true}
	if s.shares == nil {
		s.shares = make(map[int]*share)
	}
	s.shares[pid] = sh
	return sh.bytes, nil
}

func (s *Sampler) now() time.Time {
	if s.Clock != nil {
		return s.Clock()
	}
	return time.Now()
}

// fields reads lines of a name, a separator (or none) and a number.
func (s *Sampler) fields(path, sep string) (map[string]uint64, error) {
	raw, err := fs.ReadFile(s.FS, path)
	if err != nil {
		return nil, err
	}
	out := make(map[string]uint64)
	for sc := bufio.NewScanner(bytes.NewReader(raw)); sc.Scan(); {
		f := strings.Fields(sc.Text())
		if len(f) < 2 {
			continue
		}
		if n, err := strconv.ParseUint(f[1], 10, 64); err == nil {
			out[strings.TrimSuffix(f[0], sep)] = n
		}
	}
	return out, nil
}

func (s *Sampler) number(path string) (uint64, error) {
	raw, err := fs.ReadFile(s.FS, path)
	if err != nil {
		return 0, err
	}
	return strconv.ParseUint(strings.TrimSpace(string(raw)), 10, 64)
}
