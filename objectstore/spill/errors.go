package spill

import "errors"

// The errors of a target that matter for decisions.
var (
	// ErrCorrupt: the bytes differ from what was written, or the file ends before them.
	ErrCorrupt = errors.New("spilled bytes are corrupt")
	// ErrMissing: the file is gone.
	ErrMissing = errors.New("spill file is missing")
	// ErrNoTarget: the location names a target that is not configured. It is also ErrMissing.
	ErrNoTarget = errors.New("no such spill target")
	// ErrFull: the target has no room.
	ErrFull = errors.New("spill target is full")
)
