// Package shell carries the messages between nodes: it drives a core of package remote for each other node, over connections of a Transport.
//
// # Who owns what
//
// A Hub is a node's side. It has an actor for each other node, from the first message to it, the first connection with it or its first Fence on; they
// stay. A link is a connection: a goroutine reads, and one writes what its sender does not write at once. Transports make connections: Memory in this
// process, TCP through a port that a Mux may share with other protocols.
//
// A payload that was sent is the hub's until it is acknowledged, and is never copied but into the buffer that is written: its maker must not use it
// again. A payload that is delivered lies in the connection's buffer: it is the handler's until that returns.
//
// A goroutine of the program that waits for an answer may read a link in place of its goroutine (Config.Lender): see package internal/lend.
//
// # A panic
//
// What has to outlive an actor's core is saved beside it: the messages that wait, the numbers either way, which life the other node has, which are
// fenced. That is done after each step of the core and before its effects, together with what is for handlers; so a step that panics has changed
// nothing, and its event is stepped again by the core that is rebuilt. One whose effects panic is not stepped again. Either way all connections with
// the node are closed (Down names the panic), and on the next what waits is written from the first message that the other node does not have. So
// nothing is lost, and nothing comes twice. An event on which two cores have panicked is dropped: a message is given back by Refused; what was read
// was not taken, and is written again by the other node.
//
// # What blocks
//
// Send waits while the core asks senders to wait (remote.Full), or the limit is reached, until its context ends; TrySend, Fence and Peers never wait.
// Handlers may block, and then nothing more is read from that node: its senders wait in turn. Meanwhile the node is told that this one lives
// (remote.Busy). Close waits for handlers, until its context ends.
//
// Deliver and Notice of one node are called one at a time, in order; those of different nodes are called at the same time. A handler must not call
// Send: of two nodes whose handlers wait for each other's room, neither reads. TrySend is for handlers and actors.
//
// # Bounds
//
// For each other node: messages up to remote.Config.Limit, with 64 bytes of overhead each (one that is larger goes alone); 32 KiB to read into, which
// a large message makes larger; while something is written 64 KiB, and as much again of TLS records. A stranger has five seconds for the TLS
// handshake and as long for its hello, of 1 KiB at most; of a message's size nothing is believed before its bytes come.
//
// # Who is let in
//
// Each side says first which cluster and node it is of, which life, and which versions it speaks. Who is dialed refuses what does not match, with
// both values in the error: ErrCluster, errs.ErrVersion or remote.ErrOtherNode here, ErrRefused with that text there. Config.Verify holds the
// certificate of the other end to the home that it says.
//
// # Errors
//
// ErrCluster, ErrRefused, ErrBroken, ErrALPN, ErrCut, those of package remote, and of package errs: ErrProtocol for what is malformed, ErrVersion,
// ErrInvalid, ErrBacklog, ErrShutdown.
package shell
