// Package storage is what the spiller asks of a place to spill to: a directory, a bucket.
//
// An implementation stores numbered files for one session and is safe for concurrent use. All its calls
// block, for as long as the medium takes; those on the network end with their context. It keeps no
// state that a restart would need. Errors wrap one of this package's sentinels where one fits.
// Implementations for URL schemes are added with Register; package storagetest holds the conformance test.
package storage
