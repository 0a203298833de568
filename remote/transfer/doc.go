// Package transfer decides how the bytes of objects go from node to node: whom to ask for an object, what a holder sends to whom, and what becomes of
// a transfer whose connection breaks. Package shell below it carries that out.
//
// # Who owns what
//
// A Core is one node's part, a receiver and a holder in one. As a receiver it owns the fetches under way: which nodes may have the object, how much of
// it has arrived, and the checksum of each chunk. As a holder it owns the sends: which node has pulled what, how far it is, and how far it may go. Whether a fetch
// may begin the store has decided before it asked (decision 0018); this core only bounds what is under way at once, in all and from each node, and begins fetches in
// the order in which they were asked for. A holder bounds how many pulls of one node it serves at once (Config.PeerPulls): those beyond are refused, and asked for again. Where an object is its owner knows: what a fetch is told of that is a hint.
//
// # A transfer
//
// A receiver pulls: Pull names the object and the offset from which it wants it, and how far the holder may send; Credit moves that on as chunks arrive. So a holder
// that is slow, silent or gone costs what was under way: the next Pull, to the same holder or another, begins with the chunk that is missing. A chunk carries the
// checksum that the node with the whole object has computed, and it is checked wherever the chunk arrives. A connection within one machine has no checksums: the kernel
// copies the bytes from one process to the other, as memory is copied anywhere. Whoever passes such a chunk on to another machine computes its checksum.
//
// # A broadcast
//
// A node that is fetching an object serves to others what has arrived of it. A holder sends an object of more than Config.Small bytes to one node at a time,
// and sends the others on to that one (Refused, Busy). So nodes that want the same object at the same time become a chain, in which each byte
// leaves every node once. A node that was refused by all insists, and is not refused again.
//
// No node waits for itself: a node that others have a part from is given the rest only by one that has more, and any other node by one that has as much. Before
// anything has arrived anywhere the order in which nodes ask a holder is what forbids a circle: each is sent on to those before it. One that loses its place in
// that order, since its connection breaks, is sent on to those alone that the holder sends to, and served only by one that has something.
//
// # What blocks
//
// Nothing: the core is pure. Each wait ends by itself: a connection on which nothing is heard is closed (Config.Silence), a pull that brings nothing is given up
// (Config.Stall), a holder that fails is asked Config.Tries times.
//
// # Errors
//
// The error of NoMemory, as it is. ErrNoHolder: no node is left that could send the object; it names each and why, and wraps spill.ErrMissing if all have said that they do not have it. Connections are
// closed with ErrSilent, ErrStalled, ErrIdle, ErrGone or ErrProtocol.
package transfer
