package spill

import (
	"context"
	"os"
)

// Spiller writes objects to its targets and reads them back.
type Spiller struct{}

// Default is the configuration for a session: one directory on disk.
func Default(session string) Config { return Config{Session: session} }

// Validate reports everything that is wrong with the configuration.
func (c Config) Validate() error { return nil }

// Open opens every target, takes the session's lock in each and removes what dead sessions left.
func Open(cfg Config) (*Spiller, error) { return &Spiller{}, nil }

// Write writes items, fused into one or a few files over all targets. done is called once,
// from another goroutine, with a location an item in order, or an error and nothing written.
func (s *Spiller) Write(items []Item, done func([]Location, error)) {}

// Read fills dst (len(dst) == loc.Size) and checks it. done is called once, from another goroutine;
// until then dst belongs to the spiller. Errors match ErrCorrupt, ErrMissing or neither (worth another try).
func (s *Spiller) Read(loc Location, dst []byte, done func(error)) {}

// Remove gives objects up; a file is deleted with its last object.
func (s *Spiller) Remove(locs []Location) {}

// Fallback makes a file of size bytes, reserved on disk, in a local target, to be mapped in place of
// segment memory. It returns the file, open for reading and writing, and its path.
func (s *Spiller) Fallback(size uint64) (*os.File, string, error) { return nil, "", nil }

// Reopen opens a fallback file that a killed process of this session left; to be called before Recover.
func (s *Spiller) Reopen(path string) (*os.File, uint64, error) { return nil, 0, nil }

// Release unlinks a fallback file. Mappings of it stay valid.
func (s *Spiller) Release(path string) {}

// Recover is called once the store was rebuilt, with every location its index names. It cancels what is
// queued, waits for I/O in flight, counts the references anew and deletes every file without one.
func (s *Spiller) Recover(live []Location) {}

// Stats are the counters since Open.
type Stats struct{}

// Stats reads the counters.
func (s *Spiller) Stats() Stats { return Stats{} }

// Close waits for I/O in flight until ctx ends; what is queued is answered with errs.ErrShutdown.
func (s *Spiller) Close(ctx context.Context) error { return nil }
