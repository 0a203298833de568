// Package disk spills to a directory of a local (or mounted) file system, URL scheme file.
//
// Files are written and read with direct I/O: a spilled object is not wanted in the page cache, which
// would take the memory that spilling is to free. Where the file system refuses it, or the URL says
// ?direct=false, I/O is buffered and the pages are dropped behind it. Blocks are reserved before
// the first write, so a full disk is known early. Nothing is synced: a spill file has to outlive
// processes, not the machine.
//
// Each session has a directory mobula-SESSION with a lock file, flocked by the process that
// owns it. Open removes the directories whose lock is free, except those of sessions that may be started
// again. The kernel holds the lock; this
// package has no other state. Every call blocks for as long as the disk takes and cannot be cancelled
// within one batch of 4 MiB.
package disk
