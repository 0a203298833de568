// Command mobula starts a node, stops it, and shows what it does.
//
// It is the one place that handles signals and ends the process: package mobula, the runtime
// as a library, does neither. Each command is a function of its arguments, the environment
// and two writers, so that tests run it inside their process.
//
// # Exit codes
//
//	0    done
//	1    it failed for another reason than those below
//	2    a wrong command, flag, configuration or argument
//	3    no node is running at the address
//	4    what was asked for is not known
//	5    not done in time
//	6    a node is running there already
//	130  interrupted
package main
