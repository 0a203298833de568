// Command compare tells whether the work tree is faster or slower than a commit, by rows of mobench and of the benchmarks beside peers, within
// ten minutes. `make bench-compare BASE=rev` calls it.
//
// Both sides run in turn, a process a row, round after round, until the time is over: the machine's moods are then both sides'. A row has the
// medians of both, new/base as a ratio of costs (above 1 is slower), and base/base, the base's odd rounds against its even ones: what the
// machine does by itself. A row is marked where new/base is beyond 5 % and beyond twice base/base, and the rounds of the two sides hardly mix.
//
//	rows.go     which rows, and how each is run
//	sides.go    the two trees, and what is built in them
//	judge.go    medians, the test of ranks, marks
//	report.go   the table, and JSON
package main
