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
	FilesLeft                   uint64        // could not be deleted; they go with the session
	Orphans                     uint64        // deleted by Recover
	WriteTime, ReadTime         time.Duration // sum over all pools
	Refused                     uint64        // writes that a target did not take
	OutOfDisk                   uint64        // that none took, mapped files included
	Corrupt, Missing            uint64        // reads
	Probes                      uint64        // looks at a target's capacity
	Fallbacks                   uint64        // mapped files made or reopened

	LiveFiles, LiveObjects int
	LiveBytes              uint64 // of objects; files with dead objects are larger
	Moving                 int    // writes and reads that wait or run
	MappedFiles            int
	MappedBytes            uint64
	Targets                []TargetStats
}

// TargetStats is one target.
type TargetStats struct {
	URL      string
	Health   spill.Health
	Why      error          // it is not healthy
	Capacity spill.Capacity // when it was last asked
	Assigned uint64         // bytes of files given to it, less those refused
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
