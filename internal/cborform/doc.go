// Package cborform says how Go values are encoded in CBOR: those of tasks, actors and objects (internal/codec), and the fields of a program's own errors
// (internal/errs). Both are read by nodes and programs of other releases, and values by Python.
//
// The package has no state, nothing in it blocks, and it has no errors.
package cborform
