// Command mobula starts a node, stops it, and shows what it does.
//
// Only this package handles signals and ends the process: package mobula, the runtime as a library, does neither.
// Each command is a function of its arguments, the environment and two writers, so that tests run it inside their
// process.
//
// # Exit codes
//
//	0    done
//	1    failed for a reason not listed below
//	2    a wrong command, flag, configuration or argument
//	3    no node is running at the address
//	4    no such object, task, actor or worker
//	5    not done in time
//	6    a node is running there already
//	130  interrupted
package main
