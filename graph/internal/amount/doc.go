// Package amount knows which amounts of a resource there can be, as tasks ask for them and workers have them.
//
// It holds no state, nothing blocks, and the errors are its callers'.
package amount
