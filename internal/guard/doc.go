// Package guard ends processes that the workers of a node have started, however the node ends.
//
// The kernel kills a worker with its node (Pdeathsig), but not the worker's own children, nor theirs. A guard is one more process of the
// node: this program, started again. It becomes a guard in an init function and runs nothing else of the program. It holds the reading
// end of a pipe whose only writer is the node; the pipe ends however the node ends. When a worker has ended, and for all workers when
// the pipe ends, the guard kills
//
//   - the rest of the worker's process group;
//   - every process with the worker's mark in its environment (Variable), whatever its group, session and parent.
//
// Processes inherit the mark with the environment. It names the node, its life and the worker. A node that runs in a worker of another node adds its
// marks to those that it has, so that the end of the outer node ends all.
//
// # What it does not reach
//
//   - A process that has left the worker's process group and has no mark, because it was started with another environment (env
//     -i), or has overwritten its environment (setproctitle). A task leaves both to start a process that should outlive it.
//   - A child that a Python worker has forked without an exec and that has left the group. It has the mark of the worker's template: it
//     ends with the job or the node, not with the worker.
//   - Processes of another user.
//   - If the guard is killed together with the node, the remaining processes live until the node starts again
//     (Sweep).
//
// # What blocks
//
// Close waits until everything is gone, bounded by its context. Nothing else blocks: if a guard does not read, it misses messages, and later
// finds the processes by the mark of the node.
//
// # Errors
//
// None: a node whose guard cannot be started works without one, logs that, and tries again.
package guard
