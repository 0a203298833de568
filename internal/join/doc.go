// Package join gets a program its connection to the runtime: Start runs a node in the process and joins it, Connect joins one that runs by
// itself, Worker serves one if the process was started for that. A Session owns what was started for it, and ends it in
// the order that lets everything leave: the client, the node, the plan of faults. Nothing else here has state.
//
// Start and Connect block until the session can be used, or ctx ends; Leave until everything has ended. Errors are those of packages
// node and client.
package join
