// Package phases builds the spans of sampled tasks after the fact, from the owner's
// transitions and the times that workers report.
//
// A task has a span of its own, and below it one for each phase. Phases follow one another: each begins where the
// one before ends, the first begins with the task, and the last ends with it, so they sum to the task's time
// exactly. Phases that took no time are left out. If clocks differ a little (the owner reads its clock once for
// several messages), a phase begins no earlier than the one before it.
//
// A task's span has links to those of the tasks whose results it takes, if they have spans. Retries are marked with their reason, and so
// are later lives: an actor that restarts, a result that is made again.
//
// Builder is a pure core: it owns only the tasks under way, does no I/O and never blocks. It is bounded: beyond
// its limit it drops the tasks that are under way longest, and counts them.
package phases
