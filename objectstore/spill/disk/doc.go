// Package disk spills to a directory of a local (or mounted) file system, URL scheme file.
//
// Files are written and read with direct I/O: spilled objects in the page cache would take the memory that
// spilling should free. If the file system refuses direct I/O, or the URL has ?direct=false, I/O is buffered and
// the pages are dropped after it. Blocks are reserved before the first write, so a full disk is noticed early.
// Nothing is synced: a spill file must survive processes, not the machine.
//
// Each session has a directory mobula-SESSION with a lock file, flocked by the process that
// owns it, and has the owner in it (storage.Owner). The directory of another node is refused. Open removes the directories of processes of this
// machine that are gone, except those of sessions that may be started again. A lock that is free here may be held by another host; only on a disk
// that no other host can have, Open also removes other sessions, a day after they were last open. Every call blocks for as long as the disk takes and
// cannot be cancelled within one batch of 4 MiB.
package disk
