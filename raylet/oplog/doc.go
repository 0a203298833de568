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
// # A ring by bytes
//
// Records are appended at the head, the newest segment. Which are live is known only in memory: after Open every record counts as live until it is
// freed. A segment of which every record was freed goes at once. When more is dead than is live and MinSegment besides, the log is Due: Tend appends
// what is live in the oldest segment, the tail, once more, and drops the segment. So the records of a log take at most twice what is live, and
// MinSegment; and each byte that is moved is paid for by one that is given up.
//
// A record may say what has become of others, as that they are forgotten. It is needed as long as one of those can be read back: a process that is killed
// forgets which records were freed. Lapse says so. Such a record does not count as live, and keeps its segment until that is the tail: what it is
// about lay before it, and is gone then.
//
// A process may be killed between the append of a moved record and the end of the segment where it was. Then the log has it twice. It is for the
// owner to know both for one, and which of two records replaces the other: its records have numbers.
//
// # What it takes on disk
//
// The records; what is left free in the segment that is written to, at most a segment; a reserve of one segment, from the second on, in which Tend goes on when
// the disk is full; what a segment could not take of a record that was longer than the room left in it. Segments that are dropped are kept to be written again,
// since their pages exist already, up to Options.Reuse bytes; one that was not needed for some time is deleted. A segment has a quarter of the size of
// all, within MinSegment and MaxSegment.
//
// # Who owns which state
//
// A Log belongs to one goroutine, the owner's actor, which calls Tend when it is Due. Segments before the active one stay mapped, up to Options.Reuse
// bytes; the others cost a file descriptor each. If files have no name anyway (Unlink), the first Options.Memory bytes of a log are plain memory instead
// of files.
//
// # What blocks
//
// Append blocks for the creation of a file (fallocate), once or twice per segment; Read and Tend block for disk reads of
// older segments. Nothing waits for another process.
//
// # Errors
//
// CodeOutOfDisk if no segment can be allocated: nothing was appended, and the next Append tries again. A Rest of package owner keeps such records in memory until then. ErrCorrupt
// for damage other than a torn tail, ErrClosed after Close, ErrNoRecord for a cookie without a record.
package oplog
