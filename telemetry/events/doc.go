// Package events is the bounded record of tasks' state changes on a node: the newest in memory, more in files of
// bounded size, and an exact count of those in neither.
//
// # What is dropped
//
// Above Config.Rate changes a second whole tasks are dropped, chosen by their id. So tasks that are recorded are recorded completely,
// except those under way when the share changes. Sampled traces and tasks that fail are never dropped. Every change that is not
// recorded is counted (Stats.Dropped). A recorded change that left the memory before it was written to a file is counted too
// (Stats.Unfiled). Counts by state include every change.
//
// # Who owns what
//
// A Recorder owns its blocks of events. A full block is never written again, so a reader
// keeps the recorder's lock only to copy the list of blocks and the unfinished one. It keeps
// no task's spec, whose arguments may be large, and of an error only the code and some 512 bytes of text: an event is 96 bytes, one of a
// failure some 300, or 1,200 with long texts.
//
// # What blocks
//
// Record only takes a lock that nobody holds for long: it uses no clock and no I/O. It is on the hot path of
// owners. Whoever wants files calls File.Run in a goroutine.
package events
