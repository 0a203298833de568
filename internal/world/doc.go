// Package world runs nodes whole, in one goroutine and in virtual time, from one seed: the production cores, joined as internal/node joins them, with
// simulated programs as their clients and with faults between any two effects.
//
//	report, err := world.Run(world.Config{Seed: 7})
//
// # What is real and what is not
//
// The cores are those that a node runs: raylet/owner (one for each job), raylet (scheduler and pool), objectstore, gcs/directory, gcs, and those of
// internal/node that decide on jobs and clients; between nodes remote (a Peer for each other node), raylet/cluster and remote/transfer, and the messages of
// raylet/internode, encoded and read again. What their shells do is done here again, without actors, sockets and files: mailboxes and connections
// are boxes, memory is byte slices that are read back and compared, the log, the index and the spill files are what a kill leaves of them. An owner's log is
// tended a few records at a time, so that a kill finds some of them twice.
//
// The control plane is the tables of gcs, which outlive all nodes and are synced, and a membership.Judge (court.go): nodes write heartbeats, and read which lives
// are over; one that reads that its own is ends. There is no gossip: a node knows the others, and the verdicts; of hints there are those that a fault makes up.
// A worker runs functions whose results follow from their arguments, so that whoever gets an object knows what has to be in it.
// A driver sends again to a node that was killed what its credit says is not handled, as internal/client does.
//
// # Order and time
//
// A box gives its events in the order of their arrival, as the kit's mailboxes do; which box is next is drawn. So two events of one sender for one
// receiver keep their order, and all others come in any. Input and output, whose order nobody promises, are drawn one by one. Time goes on by a few
// microseconds with each event, and jumps to the next timer when there is nothing else to do.
//
// # Faults
//
// A plan has faults come at random, some tens in a run: a core is thrown away in the middle of the effects of a step, or before the step, and built anew after the
// kit's backoff, and now and then the one that follows too, as it begins. Or the event brings down two and is dropped, and whoever waits for it is told, as the shells
// of internal/node do; one that is vital the third core steps (poison.go says which events these are; restarts beyond a policy are not there). A process dies, a
// node or its machine is lost and starts again, a disk is full, rots or fails, an owner's log gets no more segments, a connection breaks. A node's kill loses nothing
// that was written, but for what a log could not take: log and index are mapped files, and their pages outlive a process. Now and then a node is killed that does not
// keep its store: then puts are lost, and the next life has the log alone, and clients who have the old memory mapped. The loss of a machine leaves a prefix of the
// log, and nothing of the index, since neither is synced.
//
// Connections between nodes break, or nothing passes on them for a while, or all comes late. A node is cut off from all others and the tables, or stopped with
// all its processes: for up to two seconds, and then the judge may not end its life, or for longer, and then it goes on after the others have buried it. A
// node's process is away for seconds, with or without a word of its machine, and one node of a third of the runs is lost for good, with its programs. The tables
// have no quorum for a while: nothing is written there or read, and no life ends. Two nodes that live take each other for dead, by a hint, and their jobs give up
// what they have there.
//
// # What is checked
//
// After steps the cores recount themselves (Validate). Memory stays within the store's limit, and nobody is given bytes that another has. Every
// get gives the value that the program has to see, or an error that a fault explains. No slot runs two tasks, no attempt runs twice, and what was accepted of
// one attempt stays that of this one while somebody holds it. Once the faults are over every program
// ends within bounded time; without faults, and without actors' names, also where the tables never answer. When a program has let go of everything, no owner,
// store or scheduler of any node has anything left of it.
//
// # Who owns what
//
// A World owns nodes, processes, the lines between nodes, the clock and the source of randomness. Nothing in it is safe for concurrent use; many worlds may run at once.
//
// # What blocks, and errors
//
// Nothing blocks. Run gives a *Failure: the broken promise, the seed, and the last events.
package world
