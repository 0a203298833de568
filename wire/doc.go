// Package wire is the local protocol: the messages that drivers, workers and the
// node exchange, their protobuf encoding, the framing, and the connection over a
// Unix socket.
//
// A message is a plain Go struct. Inside one process it is passed by pointer and
// never encoded; between processes it is encoded as the protobuf message of the
// same name in mobula.proto. Whoever sends a message gives it up: neither side
// changes a message, or anything it points to, after sending.
//
//go:generate go run mobula/internal/tools/protogen -root ..
package wire
