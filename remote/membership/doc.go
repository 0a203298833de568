// Package membership is what a node believes of the others of its cluster: who is there, where, and whether it lives.
//
// # Who owns what
//
// A Core owns one belief for each other home: the latest life that it has heard of, what that life says of itself, and one of four states (State). It
// draws them from hints: the gossip (Seen, Failed, Leaving), the connections for messages (Connected, Disconnected) and the heartbeats in the control plane's
// table (Beat). A hint may be wrong. It costs time, and never correctness: on NodeSuspect and NodeDead work may run elsewhere as well, and no more than that.
//
// Only the control plane ends a life, by its epoch (Fenced, told as NodeFenced). That is final: nothing that is heard of a life after it, or of a life before
// the latest, changes anything. A Judge is the rule by which a server of the control plane finds that a life is over.
//
// Loads are opaque reports that the nodes gossip. Core spaces out those of its own node so that all of them together cost each node a bounded number of
// bytes a second (Interval), and Loads has the latest of each node.
//
// # What is written where
//
// A Node travels as the metadata that the gossip gives each member, in a fixed layout with a version (Node.Meta, ParseMeta): at most MaxMeta bytes. Loads and
// goodbyes are messages of the gossip (Load.Message, Goodbye.Message, ParseMessage).
//
// # What blocks, and errors
//
// Nothing blocks: all is pure. ErrMeta: a node says more of itself than metadata can hold, or what was received is none. ErrMessage: the gossip has a message
// that this release cannot read. Package shell drives a Core, with memberlist; package
// model is the gossip as a pure function, for simulations.
package membership
