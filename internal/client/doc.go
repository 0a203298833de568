// Package client is one process' side of the conversation with its node: the handles it
// holds, what it submits, puts, gets and waits for. The driver's library uses it, and
// workers use it for nested calls.
//
// # Who owns what
//
// The table of handles (sharded by object id) is the one place where this process'
// references are counted; the owner on the node knows only whether there is at least
// one. The store alone knows pins; the client counts its readers of a pin and gives it
// back with the last. Values of resolved inline objects are kept, up to Config.CacheBytes,
// and asked for again when they were dropped.
//
// Client is composed of parts, a type each with state, locks and methods of its own; files begin with the name of their part. From the
// lowest to the highest: base (the configuration, the client's life), clock, memory (the segment), handles (the table, the queue of
// releases), outbox (the way out), credit, submits, gets, puts, streams, actorWatches, requests, watchers (and rooms), followed (tasks
// that end with a context), collector, rejoining (a node that was gone). A part calls those below it directly. Two ask those above: the queue
// of releases has itself sent (releaserUp), and the outbox tells that the connection is gone (outboxUp).
//
// Lock order: outbox.mu, then releaser.mu, streams.mu, actorWatches.mu or pending.mu, then a shard's mu.
// callOrder.mu comes before outbox.mu. Nothing is sent while a shard is locked.
//
// # What blocks
//
// Get, Get1, Wait, Next, Create, Put of a large value and Request wait for an answer;
// each ends by the answer, by its context, or by the death of the client. Submit and Put
// wait for credit, once the node has granted any. Everything else only hands messages to
// the port, which blocks for backpressure. A waiting goroutine of a task is reported
// through TaskContext.Blocker: at once if the task has called another, else after a
// millisecond, since what it fetches is most often there.
//
// Where each submit is followed by its wait, submit and wait are sent in one piece: a
// submit is kept back for at most a millisecond, and everything else that is sent takes it along.
// Inside the node's process the waiter does the node's work on its question (TurnPort). Where
// the answers go to one waiter only, it reads them itself (Config.Lender).
//
// # Errors
//
// An object's own error comes as the *errs.Error it was resolved with. ErrGetTimeout: the
// context's deadline. ErrFetchTimedOut: the bytes of a stored object did not come in
// Config.FetchTimeout. ErrObjectFreed: the handle was released before. ErrShutdown: the
// client was closed. ErrOwnerDied: the connection to the node is gone for good: its directory
// is gone, or it was not back in the 30 s that Config.Reconnect looks for it.
//
// # When the node restarts
//
// With Config.Reconnect set, operations wait while the connection is down, and a new
// connection is told: the handles and the questions that are open (Holdings), the pins,
// the creates and requests without an answer, and again the latest submits, inline puts
// and seals, because some of them may not have reached the node's log. The owner knows
// tasks and objects by id and ignores what it has. Guaranteed: every submit, put and seal
// that was accepted here is known to the new node if it had reached the old node's log or
// is among the last 65,536 messages and 64 MiB; every open Get, Wait, Next, Create and
// Request is answered. Not guaranteed: that a Request runs only once, and that a Cancel or
// KillActor arrives that was written to a connection just before it broke. Ask again.
package client
