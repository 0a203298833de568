// Package quiet keeps the machine's long runs apart: a benchmark's figures, a deep run's limits and a gate's chances are spoiled by each
// other. They hold one lock, a file of the temporary directory, which the kernel gives back with its holder.
//
// A gate goes on without it, and says so: a change is not refused for what runs beside it. The others do not begin.
package quiet
