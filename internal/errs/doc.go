// Package errs is the only list of errors that cross processes, each with a code for the wire and a sentinel for
// errors.Is. Package mobula re-exports the sentinels, and has the types for errors.As (Show); nothing else may
// invent a wire code.
//
// An *Error is immutable. Its Is method matches the sentinel of its code and of every broader code above it (freed is also lost),
// so a caller may match as narrowly as it likes. An error of a type that the program registered is rebuilt from its fields, and
// errors.As finds it. Refs names the references to objects in such an error, and in a Python exception. Nothing here blocks.
package errs
