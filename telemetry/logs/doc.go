// Package logs makes the node's and the workers' slog loggers: text or JSON, to standard
// error or to a file that is rotated, with the ids of the trace that a record belongs to.
//
// The functions return plain slog loggers and keep nothing; the file belongs to whoever closes it. A record blocks
// only for the write. Errors are errs.ErrInvalid.
package logs
