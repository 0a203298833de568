// Package rotate writes a file that never grows beyond a size: before it would, it is renamed to NAME.1, the old
// NAME.1 to NAME.2 and so on, and the oldest is removed.
//
// A Writer owns its file and the names beside it; only one may write to a path. Its methods
// may be called from any goroutine. Write blocks only for the disk. It starts no goroutine (the usual library for
// this leaves one running after Close).
//
// Errors are those of the file system, with the path, or errs.ErrShutdown after Close. If a file cannot be renamed
// it is written up to its bound; then writes fail.
package rotate
