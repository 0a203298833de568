package spill

import "errors"

var (
	// ErrCorrupt is wrapped when bytes differ from what was written: a checksum, a header or the length.
	ErrCorrupt = errors.New("spilled bytes are corrupt")
	// ErrMissing is wrapped when a spill file is gone.
	ErrMissing = errors.New("spill file is missing")
)
