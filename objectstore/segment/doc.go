// Package segment is the shared memory of the object store: files, each as large as the limit and backed step by
// step, and the mappings through which clients use them.
//
// The node's store owns a Segment: it alone reserves memory and punches it out. Clients
// open a Mapping from the file descriptor they were sent and never change the file. A page that nobody reserved is
// never touched, so no access can end in SIGBUS: if memory is short, Reserve fails with
// errs.CodeSegmentUnavailable before any page is handed out. What another node sends may go to a cold Room instead, whose
// memory comes with the bytes: they are written through the file, and a write that fails is an error too.
//
// A segment without a name has huge pages for clients that ask for them (MADV_HUGEPAGE, then Populate), if the
// process may mount a tmpfs (decision 0012).
//
// Reserve and Punch block for the time that the kernel needs, some 0.2 ms per MiB. Map blocks on nothing. A
// Mapping is safe for concurrent use.
package segment
