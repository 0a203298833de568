// Package register says who gets which home and which epoch: the rules, as a pure function of a row and a claim, and the
// interface of whoever keeps the rows.
//
// The control plane keeps them (package gcs); a node that is its own control plane has no other register than its directory
// (Own); Memory keeps them in this process, for tests. registertest holds each to the same rules.
//
// Begin of Own and Memory does not block; that of the control plane waits for it. Errors: ErrCopied, and errs.CodeInvalid for a claim
// that does not fit.
package register
