// Package wire is the local protocol: the messages that drivers, workers and the
// node exchange, their protobuf encoding, and the framing. Package wire/conn has the connection.
//
// # Messages
//
// A message is a plain Go struct. Inside one process it is passed by pointer and
// never encoded; between processes it is encoded as the protobuf message of the
// same name in mobula.proto, which is the schema that other languages follow.
// Whoever sends a message gives it up: neither side changes a message, or anything
// it points to, after sending. An empty list or byte string arrives as nil.
//
// A field stands in two places, which must agree: in mobula.proto, with its number and its type on the wire, and in the
// Go struct. From both internal/tools/protogen writes the codec (kinds_gen.go, encode_gen.go, decode_gen.go), those of the
// owner's log and of the messages between nodes, and Python's messages. By hand is what is on a task's path, where the messages share allocations and copies
// (encode_msg.go, encode_value.go, decode_msg.go, decode_value.go), and errors, which are bounded. Tests hold all of it against
// the code that protoc's generator makes of mobula.proto (package pb), and against recorded frames.
//
// Encoded is messages that a node passes on between a worker and the owner of a job of another node. It is made of a connection's frames
// (FrameReader.Passing) or of a message between nodes (PassOn), and written to either as it is.
//
// # State, blocking and errors
//
// What Decode returns shares nothing with the bytes it was given. A FrameWriter and a FrameReader own what is between
// messages and bytes of one connection; neither does I/O, and nothing here blocks.
//
// errs.ErrProtocol: malformed, truncated or oversized; says what, at which byte of which
// frame. errs.ErrInvalid: a message that cannot be sent. errs.ErrRegistryMismatch: two binaries that cannot work together.
package wire

//go:generate go run mobula/internal/tools/protogen -root ..
