// Package join connects a program to the runtime: Start runs a node in the process and joins it, Connect joins a running one, and Worker
// serves one if the process was started for that. A Session owns everything that was started for it, and ends it in order: the client, the
// node, the plan of faults. Nothing else here has state.
//
// Start and Connect block until the session can be used, or ctx ends; Leave until everything has ended. Errors are those of packages
// node and client.
package join
