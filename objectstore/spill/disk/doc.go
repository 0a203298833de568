// Package disk spills to a directory of a local (or mounted) file system, URL scheme file.
//
// Files are written and read with direct I/O: a spilled object is not wanted in the page cache, which
// would take the memory that spilling is to free. Where the file system refuses it, or the URL says
// ?direct=false, I/O is buffered and the pages are dropped behind it. Blocks are reserved before
// the first write, so a full disk is known early. Nothing is synced: a spill file has to outlive
// processes, not the machine.
//
// Each session has a directory mobula-SESSION with a lock file, flocked by the process that
// owns it, which says whose it is (storage.Owner). Another node's is refused. Open removes the directories of processes of this
// machine that are gone, except those of sessions that may be started again: a lock that is free here may be held by
// another host. Of what others left on a disk that no other host can have, a day decides. Every call blocks for as long as the disk takes and cannot be cancelled
// within one batch of 4 MiB.
package disk
