// Package rotate is a file that never grows beyond a size: when it would, it is renamed to
// NAME.1, what was NAME.1 to NAME.2 and so on, and the oldest is removed.
//
// A Writer owns its file and the names beside it; only one may write to a path. Its methods
// may be called from any goroutine. Write blocks for the disk alone. There is no goroutine
// behind it (the usual library for this leaves one running after Close).
//
// Errors are those of the file system, with the path, or errs.ErrShutdown after Close. A file that cannot be
// renamed goes on being written to its bound, then writes fail.
package rotate
