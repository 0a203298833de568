// Package talk has what processes that call actors, processes of actors, and the owner of a job tell one another of calls that go straight (decision 0038).
//
// The messages pass beside those of package wire, as Go values: between clients in the process of a node and that node. None goes over a socket yet, so they
// have no frames, and their Kind is none of wire's.
//
// The package owns no state and does not block.
package talk
