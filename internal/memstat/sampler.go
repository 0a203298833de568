package memstat

import (
	"io/fs"
	"math"
	"time"
)

// Sampler samples memory repeatedly. FS is the root directory; Clock defaults to time.Now.
type Sampler struct {
	FS    fs.FS
	Clock func() time.Time

	processes map[int]*process
	seen      []usage // by the last Node: the machine's, and that of each cgroup with a limit
}

// Node gives the use and the limit of the machine or a cgroup, whichever is tighter. It forgets processes that were not read since
// the last call.
func (s *Sampler) Node() (used, limit uint64, source string, err error) {
	s.forget()
	whole, err := machine(s.FS)
	if err != nil {
		return 0, 0, "", err
	}
	s.seen = append(s.seen[:0], whole)
	cgroups(s.FS, func(u usage) { s.seen = append(s.seen, u) })
	narrowest := usage{} // of the cgroups
	for _, u := range s.seen[1:] {
		if narrowest.limit == 0 || u.share() > narrowest.share() {
			narrowest = u
		}
	}
	if l := narrowest.limit; l > 0 && l < whole.limit && narrowest.share() > whole.share() {
		return narrowest.used, l, "cgroup", nil
	}
	return whole.used, whole.limit, "node", nil
}

// Room is how many bytes were left at the last Node below that fraction of a limit: the least over the machine and its
// cgroups.
func (s *Sampler) Room(fraction float64) uint64 {
	room := uint64(math.MaxUint64)
	for _, u := range s.seen {
		below := usage{u.used, uint64(fraction * float64(u.limit))}
		room = min(room, below.free())
	}
	return room
}

// Total is the memory in bytes: the machine's, or the least limit of the process' cgroup and of those above it.
func (s *Sampler) Total() (uint64, error) {
	whole, err := machine(s.FS)
	if err != nil {
		return 0, err
	}
	total := whole.limit
	cgroups(s.FS, func(u usage) { total = min(total, u.limit) })
	return total, nil
}
