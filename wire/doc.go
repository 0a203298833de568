// Package wire is the local protocol: the messages that drivers, workers and the
// node exchange, their protobuf encoding, the framing, and the connection over a
// Unix socket.
//
// # Messages
//
// A message is a plain Go struct. Inside one process it is passed by pointer and
// never encoded; between processes it is encoded as the protobuf message of the
// same name in mobula.proto, which is the schema that other languages follow.
// Whoever sends a message gives it up: neither side changes a message, or anything
// it points to, after sending. An empty list or byte string arrives as nil.
//
// The encoders and decoders are written by hand, because they are on every task's
// path, and tested against the code generated from mobula.proto (package pb).
//
// # Who keeps what
//
// What Decode returns shares nothing with the bytes it was given. What Conn.Recv
// returns is the receiver's, and may be kept: a message of a small frame has its byte
// strings in one copy of its own, so that keeping one message does not keep the frames
// around it; a message of more than 64 KiB keeps the buffer it was read into. The tasks
// of one Exec are copied one by one, each can be kept alone. TaskOptions with equal bytes
// are one pointer for a connection, as long as its table (512 entries) holds them.
// Sending copies small values and writes those from 8 KiB on from where they are.
//
// # Blocking and state
//
// Conn owns its socket, an epoll set through which the runtime's poller watches it for
// bytes alone, and the messages not yet written; nothing else is kept. Send
// waits while more than Config.SoftBacklog is unwritten, TrySend never does, Recv waits
// for a message; Close, Fail, or the end of the other process ends every wait. A
// connection whose other side reads nothing for Config.WriteTimeout fails, a patient one
// (Config.Patient) only if that process is gone (docs/decisions/0013). Listener owns
// the socket file, its lock, and a goroutine a connection. While messages go to and fro one by
// one, Recv waits in a system call instead, and through a Lender the goroutine that waits for
// an answer reads it itself (docs/decisions/0006).
//
// # Errors
//
// errs.ErrProtocol: malformed, truncated or oversized; says what, at which byte of which
// frame. errs.ErrVersion, ErrRegistryMismatch, ErrPermission: a refused handshake.
// errs.ErrNoNode, ErrNodeRunning: nobody, or somebody, is at the socket. errs.ErrBacklog:
// TrySend beyond the bound. errs.ErrDisconnected: the other side died or stopped reading.
// errs.ErrShutdown: closed on this side. errs.ErrInvalid: a message that cannot be sent.
package wire

//go:generate go run mobula/internal/tools/protogen -root ..
