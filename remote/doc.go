// Package remote is what a node has with the other nodes of its cluster. So far it is the delivery of messages: in order, and each once.
//
// # Who owns what
//
// A Peer is a core, one for each other node that there is something to say to. It owns the messages that the other node has not acknowledged, the
// number of the last one that it took from the other, and which of the connections between the two is in use. A connection
// that breaks means nothing: what is not acknowledged is written again on the next. Who is dead the control plane says, by epoch (Fence).
//
// The promise holds between two lives, of this node and of the other. When the other node begins another life, or is fenced, the messages for the
// life before are dropped and Restarted or Gone says so, in order with what was delivered: then those who had something with that node say anew
// what they hold and want, as they do after the restart of a component of their own node.
//
// # Which connection is in use
//
// Either node may dial, and both may at the same time. The node with the lower home takes the connection on which it heard the other's Hello last, and
// says so on it (Use). The other node uses a connection when it is told to. So both always come to the same one.
//
// # What blocks
//
// Nothing: the core is pure. Above Config.High bytes that are not acknowledged it asks senders to wait (Full, Room); above
// Config.Limit it refuses a message (Refused) and does not drop it in silence.
//
// # Errors
//
// ErrOtherNode: the connection leads to another node. ErrStaleLife: to a life that has ended. ErrGap: a number was left
// out. ErrSilent: the other node acknowledges nothing. ErrBacklog of package errs: see Refused.
package remote
