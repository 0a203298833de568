// Package segment is the shared memory behind the object store: files, each sized to the
// limit and backed step by step, and the mappings through which clients use it.
//
// The node's store owns a Segment: it alone reserves memory and punches it out. Clients
// open a Mapping from the file descriptor they were sent and never change the file. A page
// that nobody reserved is never touched, so no access can end in SIGBUS: running short of
// memory is errs.CodeSegmentUnavailable from Reserve, before any page is handed out.
//
// A segment without a name has huge pages for who asks for them (MADV_HUGEPAGE, then Populate), where
// the process may mount a tmpfs (decision 0012).
//
// Reserve and Punch block for the time the kernel needs, some 0.2 ms a MiB. Map blocks on
// nothing. A Mapping may be used by many goroutines at once.
package segment
