// Package conn is the connection of the local protocol: framed messages of package wire, in order either way, over a
// transport. There are two: a Unix socket, which Listen and Dial make and which knows the process at its end, and
// Pair, both ends of a connection in memory, for tests and whatever needs no process. Both pass descriptors.
//
// # Who keeps what
//
// What Conn.Recv returns is the receiver's, and may be kept: a message of a small frame has its byte
// strings in one copy of its own, so that keeping one message does not keep the frames
// around it; a message of more than 64 KiB keeps the buffer it was read into. The tasks
// of one Exec are copied one by one, each can be kept alone. TaskOptions with equal bytes
// are one pointer for a connection, as long as its table (512 entries) holds them.
// Sending copies small values and writes those from 8 KiB on from where they are.
//
// # Blocking and state
//
// Conn owns its transport and the messages not yet written; nothing else is kept. Of a socket that is an epoll set, too,
// through which the runtime's poller watches it for bytes alone. Send
// waits while more than Config.SoftBacklog is unwritten, TrySend never does, Recv waits
// for a message; Close, Fail, or the end of the other process ends every wait. A
// connection whose other side reads nothing for Config.WriteTimeout fails, a patient one
// (Config.Patient) only if that process is gone (docs/decisions/0013). Listener owns
// the socket file, its lock, and a goroutine a connection. While messages go to and fro one by
// one over a socket, Recv waits in a system call instead, and through a Lender the goroutine that waits for
// an answer reads it itself (docs/decisions/0006).
//
// # Errors
//
// errs.ErrProtocol: malformed, truncated or oversized; says what, at which byte of which
// frame. errs.ErrVersion, ErrRegistryMismatch, ErrPermission: a refused handshake.
// errs.ErrNoNode, ErrNodeRunning: nobody, or somebody, is at the socket. errs.ErrBacklog:
// TrySend beyond the bound. errs.ErrDisconnected: the other side died or stopped reading.
// errs.ErrShutdown: closed on this side. errs.ErrInvalid: a message that cannot be sent.
package conn
