// Package shell runs task graphs on a node: the actors, the client and the references around package run.
//
// A node has one Host, which owns the set of running graphs. Each graph has a runner. It owns the handles of submitted tasks, which keep
// their results, and the blobs that payloads are read from. An actor (graph/N, below the raylet) drives the graph's run.Core; handles and
// blobs outlive a panic of that core.
//
// # What blocks
//
// A graph's function blocks until the graph has ended, its context ends or the client is gone. The actor blocks only for credit and
// for a blob. Host.Secede waits for the graph's scheduler, at most until that has ended.
//
// # Errors
//
// Those of package run; ErrComponentFailed if the scheduler failed too often; the client's error if the client is
// gone.
package shell
