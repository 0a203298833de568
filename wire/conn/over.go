package conn

import (
	"net"
	"os"

	"mobula/internal/errs"
)

// Over makes a connection of a connected Unix socket, without a handshake: what comes first is its users' to say. The file is taken over, also on an error. hot: reads may
// wait in the kernel; files: descriptors are accepted. Peer is the process that has made the socket.
func Over(f *os.File, hot, files bool, cfg Config) (*Conn, error) {
	nc, err := net.FileConn(f)
	_ = f.Close() // the copy goes on
	if err != nil {
		return nil, errs.New(errs.CodeInvalid, "a socket: %v", err)
	}
	uc, ok := nc.(*net.UnixConn)
	if !ok {
		_ = nc.Close() // nobody uses it
		return nil, errs.New(errs.CodeInvalid, "a %s socket where a Unix socket is needed", nc.LocalAddr().Network())
	}
	c, err := overSocket(uc, cfg, hot, files)
	if err != nil {
		_ = uc.Close() // err says more
		return nil, errs.New(errs.CodeDisconnected, "a socket: %v", err)
	}
	return c, nil
}
