// Package proc starts the worker processes that the pool asks for, and watches them.
//
// It is the I/O beside package pool and decides nothing. A worker is the driver's own executable, started again in a
// process group of its own; its environment tells it what it is (EnvSocket and the others). A driver may name another
// program for each language, and a template: a process that has loaded what workers need and forks them (see template.go).
//
// A worker's environment is that of its driver, as sent when it connected (Program.Env), plus the variables that tell it what it is.
// No worker has the node's own environment, with whatever its operator keeps there. PATH is the driver's too.
//
// # Nothing is left behind
//
// A worker is sent SIGKILL by the kernel when its parent's thread ends (Pdeathsig), so a
// node that is killed with -9 leaves no worker. Go may end a thread at any time, so all workers are started on one thread that is
// locked for the launcher's lifetime. When a worker exits, the rest of its process group is killed before the process is reaped,
// so its children end with it. The guard, a process of the launcher, finds children that have left the group by the mark in their
// environment and kills them, and kills all of them if the node itself is killed (package guard says what it does not reach).
//
// # Who owns which state
//
// The Launcher owns the table of processes; it outlives the core of the pool and tells the next one with
// Live. Each worker has a log file for stdout and one for stderr, made with the first byte and rotated; the last
// TailSize bytes of stderr are kept in memory for errors. Logs outlive their worker, up to 1 GiB and a thousand
// files in all; LogFiles lists them.
//
// # What blocks
//
// Start, Kill and Terminate do not block: their outcome is posted as pool.StartFailed or pool.Exited. EndJob lets a job's templates end with their
// last workers. Close waits until every process is gone. Each process costs a parked goroutine on its pidfd and one for each of its two pipes; the
// guard costs two.
//
// # Errors
//
// StartFailed carries the error of os/exec. New fails with CodeInvalid for a configuration without a socket or
// Post.
package proc
