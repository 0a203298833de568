// Package observe is what a node records of itself and shows: task events, metrics, spans and log records, as package telemetry has them, and what
// workers say of themselves.
//
// # Who owns what
//
// An Observer owns what was recorded, and nobody's state depends on it: what finds no room is left out and counted. Owners and components tell it on
// their goroutines; spans are made and exported beside them.
//
// # What blocks
//
// Configure, where it opens an endpoint, and Close, for the last log records, a few seconds at most.
//
// # Errors
//
// ErrInvalid for spans that are none, and what metrics.Serve says of an address.
package observe
