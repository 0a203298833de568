// Package record is what an owner writes to its log, and the encoding: plain structs, and
// functions that append one to a buffer or read one from it. The log only sees bytes. record.proto is the schema, from
// which the encoding of the fields is generated (go generate ./wire).
//
// Each record has a number, given in the order of events, so that records may lie in any
// order: the log's upkeep moves them. A record whose position was freed may be missing when
// the log is read, or not; what is forgotten is told by a Forget, which is needed for as long
// as records before it may come back.
//
// The package has no state and nothing in it blocks. Parse fails with ErrBadRecord.
package record
