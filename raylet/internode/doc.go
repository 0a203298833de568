// Package internode is the protocol between nodes: its messages and their encoding (decision 0020). Package remote carries what is encoded here, each
// payload once and in order between two lives of nodes; it does not look inside.
//
// # Messages
//
// One node, the job's home, has the job's owner. To the scheduler, the store and the workers of another node, whoever passes messages on there stands in
// the owner's place. So most messages are envelopes: the job, and inside what the owner and those say to one another where they are on one node. It means
// the same between nodes, and is not invented twice. Pack and its answer are not among them: inline values lie with their owner, and are packed into its
// own node's store. PeerWords and ToPeer have what the owners of two jobs of different homes say to one another. Report is of a node: what others choose nodes by (package raylet/cluster).
//
// # Where it stands
//
// It is beside the cores whose messages it carries, and not below them in package wire, for that knows no core. The structs of raylet/sched, objectstore
// and raylet/cluster are those that the cores step on; a second set of the same structs would have to be translated both ways, and be kept in step. It is in
// raylet since it joins that node's parts to another's. No core imports it: who turns bytes into their events does.
//
// # Encoding
//
// A payload is message Payload of internode.proto: kind, length and body, any number of times. The schema says what is on the wire, and from it and the structs
// internal/tools/protogen writes the codec (codec_gen.go, kinds_gen.go); a field that one of the two lacks fails there. By hand is what carries messages
// of clients (clients.go): these are on a task's path and have the encoding of package wire, with its tables of task options. Those for clients are not decoded:
// the node of a worker passes them on as they came (wire.Encoded).
//
// Version grows when a message or an enum's value is added. Two nodes say which versions they speak when they connect (package remote/shell): where they have
// none in common they do not talk, and each names both; else the lower of the two is agreed, and nothing that it lacks is sent (since.go: the Encoder refuses it, and
// whoever would send a new message asks first what was agreed). A field may be added without a
// new version, since readers skip what they do not know.
//
// An empty list, map or byte string arrives as nil.
//
// # Who may send what
//
// Check holds a message to its sender, by ids alone: an id begins with the home of who gave it out. Whoever takes messages calls it before anything else.
//
// # State, blocking and errors
//
// An Encoder and a Decoder own the tables for one other node, and nothing else. Nothing blocks.
//
// errs.ErrInvalid: a message that cannot be sent; errs.ErrVersion: one that the other node does not know. errs.ErrPermission: one that its sender may not send. errs.ErrProtocol: a malformed payload. errs.ErrVersion, which is also errs.ErrProtocol: a message that this
// build does not know; it names the versions.
package internode
