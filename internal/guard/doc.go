// Package guard ends what the workers of a node have started, whatever ends the node.
//
// The kernel kills a worker with its node (Pdeathsig), but not the worker's own children, nor theirs. A guard is one more process of the
// node: this program, started again, which becomes a guard in an init function and runs nothing else of the program. It holds the
// reading end of a pipe whose only writer is the node. When a worker has ended, and for all of them when the pipe ends, which it does
// however the node ends, the guard kills
//
//   - what is left of the worker's process group;
//   - every process that has the worker's mark in its environment (Variable), whatever its group, session and parent are.
//
// The mark is inherited as the environment is, and names the node, its life and the worker. A node that runs in a worker of another node adds to the
// marks that it has itself, so that the end of the outer one is the end of all.
//
// # What it does not reach
//
//   - A process that has left the worker's process group and has no mark: it was started with an environment of its own choice
//     (env -i), or has written over it (setproctitle). To leave both is how a task starts what shall outlive it.
//   - A child that a Python worker has forked without an exec, and that has left the group, has the mark of the worker's template: it ends
//     with the job, or with the node, not with the worker.
//   - What runs as another user.
//   - Where the guard is killed together with the node, what is left lives until the node starts again (Sweep).
//
// # What blocks
//
// Close waits until everything is gone, bounded by its context. Nothing else does: what a guard that does not read cannot be told, it finds by
// the mark of the node.
//
// # Errors
//
// None: a node whose guard cannot be started works without one, which its log says, and tries again.
package guard
