// Package inspect answers what tools and programs ask about a node: lists, status, why a task waits, logs, the timeline. It ends what they ask to be ended.
//
// # Who owns what
//
// Nothing here is anybody's state: rows are made of what the components' cores say, asked between two of their steps. An Inspector owns the last figures of
// the store, which are costly, and the timelines that are being read.
//
// # What blocks
//
// Every method waits for the components that it asks, until its context ends. A list reads a component in parts and leaves it alone in between
// (scan.go): an owner with work is held up by some 2 %.
//
// # Errors
//
// ErrInvalid for a query that no row can have, ErrNotFound for what nobody here knows, ErrDeadline where a component does not answer in time.
package inspect
