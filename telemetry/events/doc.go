// Package events is the bounded record of what happened to tasks on a node: the newest
// changes of state in memory, and files of a bounded size, with an exact count of what is in neither.
//
// # What is left out
//
// Above Config.Rate changes a second whole tasks are left out, chosen by their id, so that those that are
// recorded are recorded completely (but for those under way when the share changes). Sampled traces and tasks that fail are never left
// out. Every change that is not recorded is counted (Stats.Dropped); one that was recorded but
// left the memory before the file writer came to it is counted too (Stats.Unfiled).
// Counts by state are of every change.
//
// # Who owns what
//
// A Recorder owns its blocks of events. A full block is never written again, so a reader
// keeps the recorder's lock only to copy the list of blocks and the unfinished one. It keeps
// no task's spec, whose arguments may be large: an event is 96 bytes.
//
// # What blocks
//
// Record takes a lock that nobody holds for long, and does nothing else: no clock, no I/O. It is on the
// hot path of owners. File.Run is the one goroutine, of whoever wants files.
package events
