// Package register decides which node gets which home and epoch: the rules, as a pure function of a row and a claim.
//
// A home.Register keeps the rows: the control plane (package gcs/shell), or a node that is its own control plane and has no register but its
// directory (home.Own). registertest tests each of them against the same rules.
//
// Nothing blocks. Errors: ErrCopied, and errs.CodeInvalid for a claim that does not fit its row.
package register
