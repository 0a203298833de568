package memstat

import (
	"errors"
	"io/fs"
	"strconv"
	"time"
)

// process is the last reading of a process' smaps. To give it the kernel walks every page that the process has mapped, tens of
// milliseconds for a gigabyte of the segment. So it is read again only after rest times as long; changes in between are estimated by
// the process' anonymous memory, which the kernel counts.
type process struct {
	bytes, anon uint64 // when it was read
	again       time.Time
	used        bool // since the last sample of the node
}

// rest is how much longer than reading a process' smaps takes it is not read again: half a percent of a CPU.
const rest = 200

// Process gives the bytes that a process would free by its end: its private memory and its share of the
// files it maps, without shared memory, which is the object store's segment. If smaps cannot be read, it gives the resident anonymous
// memory.
func (s *Sampler) Process(pid int) (uint64, error) {
	dir := "proc/" + strconv.Itoa(pid)
	status, err := fs.ReadFile(s.FS, dir+"/status")
	if err != nil {
		return 0, err
	}
	anon, _ := field(status, "RssAnon:")
	anon <<= 10
	begun := s.now()
	if p := s.processes[pid]; p != nil && begun.Before(p.again) {
		p.used = true
		return p.bytes + anon - min(p.anon, p.bytes+anon), nil
	}
	smaps, err := fs.ReadFile(s.FS, dir+"/smaps_rollup")
	if errors.Is(err, fs.ErrNotExist) {
		return 0, err
	}
	if err != nil {
		return anon, nil
	}
	end := s.now()
	pss, _ := field(smaps, "Pss:")
	shared, _ := field(smaps, "Pss_Shmem:")
	p := &process{bytes: (pss - min(pss, shared)) << 10, anon: anon, again: end.Add(rest * end.Sub(begun)), used: true}
	if s.processes == nil {
		s.processes = make(map[int]*process)
	}
	s.processes[pid] = p
	return p.bytes, nil
}

// forget drops the processes that were not read since its last call.
func (s *Sampler) forget() {
	for pid, p := range s.processes {
		if !p.used {
			delete(s.processes, pid)
		}
		p.used = false
	}
}

func (s *Sampler) now() time.Time {
	if s.Clock != nil {
		return s.Clock()
	}
	return time.Now()
}
