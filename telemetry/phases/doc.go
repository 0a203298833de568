// Package phases builds the spans of sampled tasks after the fact, from the owner's
// transitions and the times that workers report.
//
// The spans of one task are its own and one for each phase below it. The phases are one after
// the other: each begins where the one before it ends, the first with the task, and the
// last ends with it, so that they sum to the task's time exactly. Phases that took no time are
// left out. Where clocks disagree by a little (the owner reads its clock once for several
// messages) a phase begins no earlier than the one before it.
//
// A task has links to the tasks whose results it takes, of those that have spans. Retries, with why each was needed, and lives after the
// first are marked: an actor that is made anew, a result that is made again.
//
// Builder is a pure core: it owns the tasks that are under way and nothing else, does no
// I/O and never blocks. It is bounded: beyond its limit the tasks longest under way are
// given up and counted.
package phases
