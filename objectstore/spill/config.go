package spill

import (
	"errors"
	"fmt"
	"time"
)

// Config configures a Core. Start from Default.
type Config struct {
	Writers           int           // files written at a time on each target; 4, Ray's max_io_workers
	Readers           int           // objects read at a time on each target, apart from the writers; 4
	MinFileBytes      uint64        // objects are fused until a file has this many bytes; 100 MiB, Ray's min_spilling_size
	MaxFused          int           // objects in one file, at most; 2000, Ray's max_fused_object_count
	CapacityThreshold float64       // a disk fuller than this share takes no more; 0.95, Ray's local_fs_capacity_threshold
	CapacityInterval  time.Duration // free space is read at most this often; 100 ms, as in Ray
	ProbeAfter        time.Duration // a failed target is tried again after this time, later after up to 32 times as long; 1 s
	IOTimeout         time.Duration // bound on one file's write or one object's read on a target whose I/O can be interrupted; 5 min
}

// Default is the default configuration.
func Default() Config {
	return Config{
		Writers:           4,
		Readers:           4,
		MinFileBytes:      100 << 20,
		MaxFused:          2000,
		CapacityThreshold: 0.95,
		CapacityInterval:  100 * time.Millisecond,
		ProbeAfter:        time.Second,
		IOTimeout:         5 * time.Minute,
	}
}

const (
	maxPool  = 256
	maxFused = 1 << 20 // an index of 44 MiB
)

// Validate reports everything that is wrong with the configuration.
func (c Config) Validate() error {
	var all []error
	bad := func(format string, args ...any) { all = append(all, fmt.Errorf(format, args...)) }
	for _, p := range []struct {
		name string
		n    int
		max  int
	}{{"Writers", c.Writers, maxPool}, {"Readers", c.Readers, maxPool}, {"MaxFused", c.MaxFused, maxFused}} {
		if p.n < 1 || p.n > p.max {
			bad("%s is %d: want 1 to %d", p.name, p.n, p.max)
		}
	}
	if c.MinFileBytes < 1 {
		bad("MinFileBytes is 0: want at least 1, which gives every object a file of its own")
	}
	if !(c.CapacityThreshold > 0 && c.CapacityThreshold <= 1) {
		bad("CapacityThreshold is %g: want more than 0 and at most 1", c.CapacityThreshold)
	}
	for _, d := range []struct {
		name string
		d    time.Duration
	}{{"CapacityInterval", c.CapacityInterval}, {"ProbeAfter", c.ProbeAfter}, {"IOTimeout", c.IOTimeout}} {
		if d.d <= 0 {
			bad("%s is %v: want more than 0", d.name, d.d)
		}
	}
	return errors.Join(all...)
}
