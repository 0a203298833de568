// Package index is the store's memory of itself: a checksummed file beside the segment
// that says what lies in each extent and in each spill file. The store alone writes it;
// it is replayed after a panic of the store and after the node process was killed.
//
// The file is a header page and windows of 1 MiB, each of record slots or of overflow
// pages. A slot has two halves; an update writes the one that is not current, with the
// next generation and a checksum, so a death in the middle leaves the old record. What
// was written is in the page cache and survives the process, not always the machine. The header names
// the run of the machine; after another one the records of what lay in memory are forgotten.
//
// An Index belongs to one goroutine. Write blocks only to enlarge the file. Errors: ErrCorrupt
// when a file is not an index of this segment; errs.CodeSegmentUnavailable when it cannot grow.
package index
