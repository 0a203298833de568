// Package client is one process' side of its connection to the node: the handles that it holds, and what it
// submits, puts, gets and waits for. The driver's library uses it, and workers use it for nested calls.
//
// # Who owns what
//
// The table of handles (sharded by object id) is the only place where this process' references are counted; the
// owner on the node knows only whether there is at least one. Pins are the store's; the client counts the readers
// of a pin and gives it back with the last. The client keeps values of resolved inline objects, up to
// Config.CacheBytes, and asks again for those that it dropped.
//
// Client is composed of parts: types with their own state, locks and methods. Files begin with the name of their part. From the lowest to the
// highest: base (the configuration, the client's lifetime), clock, memory (the segment), handles (the table, the queue of releases), outbox
// (the queue to the node), credit, gets, straight (calls of actors that go straight), submits, puts, announcing (references that leave with values of other programs of the process), streams,
// actorWatches, requests, watchers (and rooms), followed (tasks that end with a context), collector, rejoining (reconnects to a node that was gone).
// A part calls those below it directly. Three call those above: the queue of releases asks to be sent (releaserUp), handles say which actors only what calls
// them still holds (callers), and the outbox reports that the connection is gone (outboxUp).
//
// Lock order: outbox.mu, then releaser.mu, streams.mu, actorWatches.mu or pending.mu, then a shard's mu.
// callOrder.mu comes before outbox.mu, and the lock of what is called of one actor (internal/direct/shell) before both: so it is not taken under any of these.
// Nothing is sent while a shard is locked.
//
// # What blocks
//
// Get, Get1, Wait, Next, Create, Put of a large value, Request and AnnounceOthers wait for an answer;
// each ends with the answer, with its context, or with the client. Submit and Put wait for credit, once the node
// has granted any. Everything else only hands messages to the port, which blocks for backpressure. A waiting
// goroutine of a task is reported through TaskContext.Blocker: at once if the task has called another, else after
// a millisecond, since the object that it fetches is usually there.
//
// If each submit is followed by its wait, both are sent in one piece: a submit is kept back for at most a
// millisecond, and any other message that is sent takes it along. Inside the node's process the waiting goroutine
// does the node's work on its question itself (TurnPort). If all answers go to one waiter, it reads them itself
// (Config.Lender).
//
// # Errors
//
// An object's own error comes as the *errs.Error it was resolved with. ErrGetTimeout: the context's deadline.
// ErrFetchTimedOut: the bytes of a stored object did not come within Config.FetchTimeout. ErrObjectFreed: the
// handle was released before. ErrShutdown: the client was closed. ErrOwnerDied: the connection to the node is gone
// for good, because the node's directory is gone, or the node was not back in the 30 s for which Config.Reconnect
// looks for it.
//
// # When the node restarts
//
// With Config.Reconnect set, operations wait while the connection is down. On a new connection the client sends
// its handles and open questions (Holdings), its pins, its creates and requests without an answer, and once more
// the submits, inline puts and seals that may not have reached the node's log, with the latest before them. The credit tells which
// those are; an owner that was lost settles it with the holdings that it asks for. The owner
// knows tasks and objects by id and ignores those that it has, or had and has forgotten since: none runs twice for that. Guaranteed: the new node knows every submit, put
// and seal that was accepted here (of seals without any submit or put among them, the last 65,536); every open Get, Wait, Next, Create and Request is answered. Not guaranteed: that a Request runs only once,
// and that a Cancel or KillActor arrives that was written just before the connection broke. Ask again.
package client
