// Package errs is the one list of errors that cross a process border: a code for
// the wire and a sentinel for errors.Is. Package mobula re-exports the sentinels, and has the types
// for errors.As (Show); nothing else may invent a wire code.
//
// An *Error is immutable once made. Its Is method matches the sentinel of its
// code and of every broader code above it (freed is also lost), so a caller may
// ask as narrowly as it likes. An error of a type that the program registered is made again from
// its fields, and found by errors.As. The references to objects in such an error, and in an exception of Python, are named in Refs.
// Nothing here blocks.
package errs
