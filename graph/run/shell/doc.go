// Package shell runs task graphs on a node: the actors, the client and the references around package run.
//
// A Host is the node's. It owns which graphs run. A runner, one a graph, owns the handles of what was submitted, which keep its results,
// and the blobs that it reads payloads from; both outlive a panic of the graph's run.Core, which an actor (graph/N, below the raylet) drives.
//
// # What blocks
//
// A graph's function blocks until the graph has ended, its context ends or the client is gone. The actor blocks for credit and for a
// blob alone. Host.Secede waits for the graph's scheduler, at most until that has ended.
//
// # Errors
//
// Those of package run; ErrComponentFailed where the scheduler failed too often; the client's where it is gone.
package shell
