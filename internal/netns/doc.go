// Package netns makes networks of network namespaces, for tests and measurements of several nodes on one machine: each host of a Net is a namespace
// with an address of its own, and a cable to a bridge in one more namespace. The machine's own network is not touched. It needs root and the
// command ip (iproute2).
//
// # What a host can do
//
// Start runs a command in it, Do anything else that opens sockets. Processes that a process starts stay in its host. So Kill ends a node whole: the
// node, its workers, and whatever they have started.
//
// # What can be done to a host
//
// Cut pulls its cable: it and the others hear nothing of each other any more, and nobody is told. Heal puts it back. Part takes the routes between two
// hosts away, so that each still reaches all others; Join gives them back. Signal stops its processes, or lets them go on.
//
// # Who owns what
//
// A Net owns its namespaces and every process in them, and Close ends both. Their names begin with the process that made them, its id and start time;
// so New also removes what a killed process has left. Whoever gets a Net with Open uses it and does not close it.
//
// # What blocks
//
// New, Close, and what changes the network wait for ip, at most Patience for each command. Kill waits until the processes are gone. Do keeps its
// thread in the host while the function runs: what that starts on other goroutines is not in the host, but processes are.
//
// # Errors
//
// ErrUnable where this process may not make namespaces, or there is no ip. All others name the command and what it said.
package netns
