// Package nodes starts a cluster of mobula nodes on the hosts of a network, as a user would: the first node with `mobula start --listen`, the others
// with `mobula start --join` and a token, each a process in a namespace of its own, with the default security.
//
// # Who owns what
//
// A Cluster owns its nodes' processes, and Close ends them. A node also ends when the process that started it is gone, unless it keeps its store (Settings.Keep):
// then only the network ends it. The network, and the folder with the nodes' directories, are the caller's.
//
// # What blocks
//
// Start, Join, Return and Run wait for the command, Wait for the end of the node, each as long as its context lives. Stop gives a node StopPatience, then ends it by force.
//
// # Errors
//
// They name the command, and have the last lines that it wrote.
package nodes
