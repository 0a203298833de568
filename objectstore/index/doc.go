// Package index is the store's record of its content: a checksummed file beside the segment that says what lies in
// each extent and in each spill file. Only the store writes it. It is replayed after a panic of the store and
// after the node process was killed.
//
// The file is a header page and windows of 1 MiB, each of record slots or of overflow
// pages. A slot has two halves; an update writes the one that is not current, with the next generation and a
// checksum, so a crash in the middle leaves the old record. Written data is in the page cache: it survives the
// process, but not always the machine. The header has the machine's boot id; after a reboot the records of objects
// in memory are dropped.
//
// An Index belongs to one goroutine. Write blocks only to enlarge the file. Errors: ErrCorrupt
// when a file is not an index of this segment; errs.CodeSegmentUnavailable when the file cannot grow.
package index
