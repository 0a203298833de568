// Package jobs decides on the life of a node's jobs, and on who is let in to them: which jobs there are, whether one that was restored still waits for
// its driver, whether a driver may come back, which worker is admitted, which owner knows which client, and what is told to whom when a client is gone or
// a job is over.
//
// # Who owns what
//
// The owner of a job (package raylet/owner) owns its tasks, objects and actors, and says when nothing of it is left (Over). The Core owns what lies around
// that: the job's place in its node, from Began or Restored to Over, and the clients of it, from Join or Admit to Gone. What outlives a core is the shell's:
// the table of owners, the sessions, what the raylet was told, and whoever waits for an answer. A new core is told all of it (Rebuild). It has forgotten
// only why drivers were cut off.
//
// # Asks
//
// What cannot go on before the core has decided asks: its event has an Ask, and an Answer with that ends the wait, behind all effects that the decision
// has. So a client is known to its job's owner before its first message, and a raylet that has admitted a worker goes on when the worker can be sent to.
//
// A message from a client to an owner is not the core's: the router reads the table of owners, which the shell writes as the core says.
//
// # What blocks
//
// Nothing: the core is pure. Its shell is in internal/node.
//
// # Errors
//
// ErrOwnerDied of package errs for a driver whose job is over, unknown, or went on without it; ErrPermission for one that cannot prove that the job is its own;
// ErrShutdown for a session that a later one of the same client took the place of.
package jobs
