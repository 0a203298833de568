package spill

import (
	"time"
)

// Config says where and how to spill. Start from Default.
type Config struct {
	// URLs are the targets, in the order of Location.Target: bare paths, file:// and, with
	// package spill/cloud imported, s3:// and mem://. Empty means one directory, Dir.
	URLs []string
	// Dir is the directory used when URLs is empty.
	Dir string
	// Session names the node: its files lie in a subdirectory of this name in each target.
	// A node that is started again under the same session finds its files.
	Session string

	Writers           int           // files written at a time on each target
	Readers           int           // objects read at a time on each target, apart from the writers
	MinFileBytes      uint64        // objects are fused until a file has this many bytes
	MaxFused          int           // objects in one file, at most
	CapacityThreshold float64       // a disk fuller than this share takes no more
	CapacityInterval  time.Duration // free space is asked at most this often
	ProbeAfter        time.Duration // a failed target is tried again after this, doubling up to 32 times it
	LogEvery          time.Duration // at most one log line in this time
}
