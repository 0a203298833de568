// Package harness is what the end-to-end tests share. What it starts for a test it ends with that test. Each wait ends with its context, and says
// what it waited for. A failure fails the test that asked.
//
//	harness.go         a node in the test's process, whose parts a test can ask; temporary directories, limits and polling
//	main.go            what TestMain of a package calls: the test binary is also the processes that tests start
//	node_process.go    a node in a process of its own, which a test can kill, and its directory start another
//	driver_process.go  a driver in a process of its own
//	memory_nodes.go    nodes in the test's process that talk over a network in memory
//	wired_nodes.go     nodes in the test's process that are a cluster on the loopback
//	functions.go       the functions that tests of several packages have nodes run; counter.go has the actor
//	checks.go          what tests ask of errors and nodes; values.go makes and checks arrays, files.go lists files
//	mounts.go          a test again in a process with mounts of its own
//	python.go          Python's half
package harness
