package shell

import (
	"errors"
	"time"

	"mobula/objectstore/spill"
)

// Stats are counters since Open, and the state now.
type Stats struct {
	BytesWritten, BytesRead     uint64 // of objects
	ObjectsWritten, ObjectsRead uint64
	FilesWritten, FilesDeleted  uint64
	FilesLeft                   uint64        // files that could not be deleted; they are removed with the session
	Orphans                     uint64        // deleted by Recover
	WriteTime, ReadTime         time.Duration // summed over all pools
	Refused                     uint64        // writes that a target refused
	OutOfDisk                   uint64        // writes and mapped files that no target took
	Corrupt, Missing            uint64        // reads
	Probes                      uint64        // probes of a target's capacity
	Fallbacks                   uint64        // mapped files made or reopened

	LiveFiles, LiveObjects int
	LiveBytes              uint64 // of objects; files with dead objects are larger
	Moving                 int    // writes and reads that wait or run
	MappedFiles            int
	MappedBytes            uint64
	Targets                []TargetStats
}

// TargetStats are the counters of one target.
type TargetStats struct {
	URL      string
	Health   spill.Health
	Why      error          // it is not healthy
	Capacity spill.Capacity // at the last probe
	Assigned uint64         // bytes of files given to it, without refused ones
}

// Stats reads the counters.
func (s *Spiller) Stats() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := s.stats
	out.LiveFiles, out.LiveObjects, out.LiveBytes = s.refs.Count()
	out.Moving = s.moving
	for _, m := range s.mapped {
		out.MappedFiles++
		out.MappedBytes += m.size
	}
	for i, t := range s.targets {
		health, assigned := s.router.Target(i)
		out.Targets = append(out.Targets, TargetStats{URL: t.url.Redacted(), Health: health, Why: t.why, Capacity: t.capacity, Assigned: assigned})
	}
	return out
}

// count notes why a read failed. s.mu is held.
func (s *Spiller) count(err error) {
	switch {
	case errors.Is(err, spill.ErrCorrupt):
		s.stats.Corrupt++
	case errors.Is(err, spill.ErrMissing):
		s.stats.Missing++
	}
}
