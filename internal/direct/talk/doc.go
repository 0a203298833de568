// Package talk has what the parts of a process tell one another of calls that go straight (decision 0038). What processes tell one another, and the owner of a job, are
// messages of package wire.
//
// The package owns no state and does not block.
package talk
