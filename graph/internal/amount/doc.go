// Package amount checks amounts of a resource, as tasks ask for them and workers have them.
//
// It holds no state, nothing blocks, and callers make the errors.
package amount
