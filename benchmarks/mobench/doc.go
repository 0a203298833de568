// Mobench measures Mobula, and next to it what the machine can do without it.
//
// Every case runs a real workload through the public API, so through leases, the task table and lineage, and
// checks its results; the node's count of finished tasks is compared with what was submitted. Tracing is on at
// 1 %, exported to a sink in this process, unless the OTEL_ variables say otherwise.
//
// # Modes
//
// embedded: the node and its slots are goroutines of this process. process: the node is in this
// process, tasks run in worker processes. node: driver, node and workers are processes of their own.
//
// nodes: several nodes, as `mobula start` starts them, with the default security. Each is in a network namespace of its own (package
// netns), and the driver is a process beside the first. nodes-embedded: the driver's node is inside the driver. In both this program starts itself again
// on the first host, and the floors are measured between hosts. Only the cases that say so in their names, transfer and broadcast run there.
//
// # Results
//
// A case gives one result: the median of its runs, their least and greatest, and where a floor applies the floor, measured in
// the same run, and the value over it. Rates are better when high, times and sizes when low. Percentages of
// overhead have a 95 % interval of the median instead, from pairs measured in turn.
//
// # Who owns what
//
// A case starts its cluster and ends it; a bench has no state between cases. Child processes (nodes, cold
// starts) end when the pipe to this process closes. Files are under -dir and are removed.
//
// # What blocks, which errors
//
// Everything is bounded by -timeout for each case. A case that fails is reported with its error, the
// others run, and the exit code is 1. A case that makes no sense in a mode is skipped and says why.
package main
