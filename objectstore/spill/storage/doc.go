// Package storage is the interface of places to spill to: directories and buckets.
//
// An implementation stores numbered files for one session and is safe for concurrent use. All its calls
// block, for as long as the medium takes; those on the network end with their context. It keeps no
// state that a restart would need. Errors wrap one of this package's sentinels if one fits. Register adds
// implementations for URL schemes; package storagetest has the conformance test.
package storage
