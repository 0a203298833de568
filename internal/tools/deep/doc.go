// Command deep runs the parts of the deep run: what looks for new faults, and takes too long, or fails too much by chance, to decide on a
// change. `make deep` calls it.
//
// A part takes at most 20 minutes. It runs on a clone of a commit, so that work goes on in the tree beside it, and adds a row to docs/deep.md
// of the tree. The deep run is whole when each part has a row of the last fourteen days; -list tells. A find becomes a test: its seed a row
// of the test's table, its input a file of the fuzz target, its schedule a case of the simulation.
//
// It never runs beside a gate or a benchmark: all of them hold one lock of the machine (internal/tools/quiet).
//
//	parts.go    the table of parts
//	record.go   the rows of docs/deep.md
package main
