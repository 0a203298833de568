// Package oplog is an owner's log of everything that it has accepted. A new core, in this process or in the node's
// next one, rebuilds its tables from it.
//
// A log file is mapped and fully allocated beforehand. A record is copied into it, and one 8-byte store makes the
// record valid. So an append costs no system call, and once Append has returned the record survives a kill of the
// process: the pages belong to the file, not to the process. It does not survive a loss of power; nothing is
// synced.
//
// # Format
//
// A log is a directory of segment files, numbered from 1 without reuse. A segment begins with a header
// of 64 bytes; then come records, each at a multiple of 8: length plus one (4 bytes, little endian), a checksum
// of number, offset, length and bytes (4), the bytes. A length of zero, or a wrong checksum, ends the segment: the tail was
// torn. The header of a segment that was finished says where its records end, which distinguishes damage before that from a
// torn tail. In a segment that was not finished, a valid record after an invalid one shows damage.
//
// # Who owns which state
//
// A Log belongs to one goroutine, the owner's actor. Which records are live is known only in memory: after Open
// every record counts as live until it is freed. A segment without live records is kept to be written again, up to
// Options.Reuse bytes, since its pages exist already; beyond that it is deleted. Compact empties segments with few
// live records, and the oldest one where much of the log waits for its end; the owner calls it when Rotations has risen. Segments before the active one stay mapped, up to Options.Reuse bytes again; the others cost a
// file descriptor each. If files have no name anyway (Unlink), the first Options.Memory bytes of a log are plain
// memory instead of files.
//
// # What blocks
//
// Append blocks for the creation of a file (fallocate), once per segment; Read and Compact block for disk reads of
// older segments. Nothing waits for another process.
//
// # Errors
//
// CodeOutOfDisk if no segment can be allocated: nothing was appended, and the next Append tries again. ErrCorrupt
// for damage other than a torn tail, ErrClosed after Close, ErrNoRecord for a cookie without a record.
package oplog
