// Package proc starts the worker processes that the pool asks for, and watches them.
//
// It is the thin I/O beside package pool: it decides nothing. A worker is the driver's own executable
// started again, told by its environment what it is (EnvSocket and the others), in a process group of its own. A
// driver may name another program for each language, and a template: a process that has loaded what workers need and forks
// them (see template.go).
//
// A worker's environment is its driver's, as that said when it connected (Program.Env), and what tells it what it is: the node's own,
// with what its operator keeps there, is in no worker. PATH is the driver's too.
//
// # Nothing is left behind
//
// A worker is sent SIGKILL by the kernel when its parent's thread ends (Pdeathsig), so a
// node that is killed with -9 leaves no worker. Since Go may end a thread whenever it likes, all workers
// are started on one thread that is locked for the launcher's lifetime. When a worker exits, what is left of its process
// group is killed before the process is reaped, so its own children go with it. Those that have left the group, and all that there
// are when the node itself is killed, a guard finds by the mark in their environment and kills: a process of the launcher's own
// (package guard, which says what it does not reach).
//
// # Who owns which state
//
// The Launcher owns the table of processes; it outlives the core of the pool and tells the next one with
// Live. Logs are a file for stdout and one for stderr a worker, made with the first byte and rotated;
// the last TailSize bytes of stderr are kept in memory for errors. They outlive their worker, up to 1 GiB and a
// thousand files in all; LogFiles lists them.
//
// # What blocks
//
// Start, Kill and Terminate do not: what becomes of them is posted as pool.StartFailed or pool.Exited.
// EndJob lets a job's templates go with their last workers. Close waits until every process is gone. Each process costs one parked goroutine on its pidfd and
// one each for its two pipes; the guard costs one and one more.
//
// # Errors
//
// StartFailed carries what os/exec said. New fails with CodeInvalid for a configuration without a socket or Post.
package proc
