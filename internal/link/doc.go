// Package link connects a process to a node over its socket, and maps the segment. Drivers and workers in
// processes of their own use it.
//
// A Link owns its connection and its mapping; Close ends both, and may be called only when
// nothing reads the mapping any more. Dial blocks until the node answered. Errors are
// those of conn.Dial, and ErrSegmentUnavailable if the segment cannot be mapped.
package link
