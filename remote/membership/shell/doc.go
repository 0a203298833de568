// Package shell drives the core of package membership with hashicorp/memberlist: it gives the gossip to the core, and gossips what the core asks for.
//
// # Who owns what
//
// A Membership is the actor, and what has to outlive a panic of its core: memberlist, the ring of keys, the loads of all nodes (membership.Loads), and the nodes
// that memberlist has alive. What the control plane and the connections know comes from whoever owns it: as events (Tell), and all of it again for a
// new core (Config.Facts).
//
// Memberlist calls back from its own goroutines, and holds its locks meanwhile. So a callback parses, notes the latest word about a life in a table (news) and
// returns; one goroutine passes the table on to the actor and waits there for room. The table has one entry for each life and source: it is bounded by the size
// of the cluster, and nothing is dropped but what a later word replaces. The order of locks: memberlist's, then that of the Membership. Nobody calls
// memberlist with a lock held.
//
// # Refutations
//
// A node that is suspected and lives says so by the gossip, which can lose that. So it exchanges all state with some nodes afterwards (confirmRefutations).
//
// # Who is let in
//
// Whoever has the key is trusted: the gossip knows no identities, and all that it says is a hint. Packets are encrypted by a key of the ring, which is changed
// while nodes run (Keys). Without a key a node gossips on loopback only. The name of the cluster is part of each packet, and authenticated with it. What cannot be
// read is dropped and counted (Stats.Refused).
//
// # What blocks
//
// Start for as long as it takes to listen. Join until the nodes have answered, Leave until others were told, Members until the actor has answered: each at most
// until its context ends. Tell, SetLoad and Keys do not block. Config.Follow, Accuse and Facts are called on the actor's goroutine, and must not block.
//
// # Errors
//
// ErrComponentFailed of package errs where the gossip's address cannot be had, ErrInvalid for a wrong configuration, ErrShutdown after the end, ErrNoNode where
// nobody answers a Join. ErrNoKey: off loopback without a key. ErrRing: keys that are no ring.
package shell
