// Package oplog is the log that an owner keeps of what it has accepted, so that a new core, in
// this process or in the node's next one, has its tables again.
//
// A record is a copy into a file that is mapped and fully allocated beforehand, and one 8-byte store
// that makes it valid. An append therefore costs no system call, and what Append returned for is there
// after the process is killed: the pages belong to the file, not to the process. It is not there
// after the machine has lost power; nothing is synced.
//
// # Format
//
// A log is a directory of segment files, numbered from 1 without reuse. A segment begins with a header
// of 64 bytes; then come records, each at a multiple of 8: length plus one (4 bytes, little endian), a checksum
// of number, offset, length and bytes (4), the bytes. A length of zero, or a wrong checksum, ends the
// segment: the tail was torn. A segment that was left in order says in its header where it ends,
// so that damage before that is told from a torn tail. In one that was not, a whole record behind one that is not tells it.
//
// # Who owns which state
//
// A Log belongs to one goroutine, the owner's actor. Which records are live is known in memory only:
// after Open every record counts as live until it is freed. A segment without a live record is kept
// to be written again, up to Options.Reuse bytes, since its pages are there already, and else deleted;
// one with few is emptied by Compact. Segments before the one written to stay mapped up to as many bytes
// again; the others cost a file descriptor each. The first Options.Memory bytes of a log whose files
// have no name anyway (Unlink) are no files but memory.
//
// # What blocks
//
// Append, for the creation of a file (fallocate) once a segment; Read and Compact, for disk reads of
// older segments. Nothing waits for another process.
//
// # Errors
//
// CodeOutOfDisk where no segment can be allocated: nothing was appended, and the next Append tries again.
// ErrCorrupt for damage that is no torn tail, ErrClosed after Close, ErrNoRecord for a cookie
// that names nothing.
package oplog
