// Package register decides which node gets which home and epoch. It has the rules, as a pure function of a row and a
// claim, and the interface of registers, which keep the rows.
//
// The control plane keeps the rows (package gcs). A node that is its own control plane has no register but its directory
// (Own). Memory keeps rows in this process, for tests. registertest tests all of them against the same rules.
//
// Begin of Own and Memory does not block; that of the control plane waits for it. Errors: ErrCopied, and errs.CodeInvalid for a claim
// that does not fit its row.
package register
