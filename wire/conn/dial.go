package conn

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"mobula/internal/errs"
	"mobula/wire"
)

// Dial connects to the node whose socket is at path and says hello; h's versions are
// filled in if they are 0. It returns the connection, the node's Welcome and the segment's
// file, the caller's to close (nil if none came).
//
// errs.ErrNoNode: nobody listens there. errs.ErrPermission: another user's node, or one
// that refuses this user. errs.ErrVersion, errs.ErrRegistryMismatch and whatever else the
// node says in its Bye. errs.ErrProtocol: what listens there is no node. The end of ctx,
// or Config.HandshakeTimeout without an answer, ends it too.
func Dial(ctx context.Context, path string, h wire.Hello, cfg Config) (*Conn, *wire.Welcome, *os.File, error) {
	nc, err := connect(ctx, path, cfg.withDefaults().HandshakeTimeout)
	if err != nil {
		return nil, nil, nil, dialError(ctx, path, err)
	}
	c, err := overSocket(nc.(*net.UnixConn), cfg, true, true)
	if err != nil {
		_ = nc.Close() // err says more
		return nil, nil, nil, err
	}
	w, f, err := c.greet(ctx, path, &h)
	if err != nil {
		c.Fail(err)
		c.rx.release()
		return nil, nil, nil, err
	}
	return c, w, f, nil
}

// connect waits while the socket's queue is full: many clients start at once.
func connect(ctx context.Context, path string, most time.Duration) (net.Conn, error) {
	short, done, err := shortPath(path)
	if err != nil {
		return nil, err
	}
	defer done()
	var d net.Dialer
	until := time.Now().Add(most)
	for pause := time.Millisecond; ; pause = min(2*pause, 100*time.Millisecond) {
		nc, err := d.DialContext(ctx, "unix", short)
		if !errors.Is(err, unix.EAGAIN) || time.Now().After(until) {
			return nc, err
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

func dialError(ctx context.Context, path string, err error) error {
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, errs.ErrInvalid):
		return err
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, unix.ENOTDIR):
		return noSocket(path)
	case errors.Is(err, unix.ECONNREFUSED):
		if fi, serr := os.Stat(path); serr == nil && fi.Mode().Type() != fs.ModeSocket {
			return errs.New(errs.CodeInvalid, "%s is no socket (%v): an address is a node's socket or its directory (--address, MOBULA_ADDRESS)", path, fi.Mode())
		}
		return errs.New(errs.CodeNoNode, "the node that made %s is gone: start one with mobula start", path)
	case errors.Is(err, fs.ErrPermission):
		if of, uid := stranger(path); of != "" {
			return errs.New(errs.CodePermission, "%s is user %d's, this process is user %d's: a node serves its own user alone (%v)", of, uid, os.Geteuid(), err)
		}
		return errs.New(errs.CodePermission, "socket %s: %v", path, err)
	}
	return errs.New(errs.CodeDisconnected, "socket %s: %v", path, err)
}

// noSocket says what there is instead of a socket.
func noSocket(path string) error {
	const instead = "start a node with mobula start, or give the address of one that runs, its socket or its directory (--address, MOBULA_ADDRESS, MOBULA_DIR)"
	if _, port, err := net.SplitHostPort(path); strings.Contains(path, "://") || err == nil && port != "" && !strings.Contains(path, "/") {
		return errs.New(errs.CodeInvalid, "address %q: a host and port is the address of a cluster, which programs join (mobula.Connect, mobula.init); here a node of this machine is asked: %s", path, instead)
	}
	if !strings.Contains(path, "/") && (net.ParseIP(path) != nil || strings.Contains(path, ".") && !strings.HasSuffix(path, ".sock")) {
		return errs.New(errs.CodeNoNode, "there is no socket %s. A cluster on other machines is joined by host and port, %s as a rule; else %s", path, net.JoinHostPort(path, "7710"), instead)
	}
	dir := filepath.Dir(path)
	switch fi, err := os.Stat(dir); {
	case err != nil:
		return errs.New(errs.CodeNoNode, "there is no socket %s, and no directory %s: %s", path, dir, instead)
	case fi.IsDir() && filepath.Base(path) == nodeSocket:
		return errs.New(errs.CodeNoNode, "there is no socket %s: no node runs in %s; %s", path, dir, instead)
	}
	return errs.New(errs.CodeNoNode, "there is no socket %s: %s", path, instead)
}

// nodeSocket is what a node calls the socket in its directory.
const nodeSocket = "node.sock"

// stranger finds the deepest part of a path that can be seen, and whose it is where that is another user.
func stranger(path string) (of string, uid uint32) {
	for p := filepath.Clean(path); ; p = filepath.Dir(p) {
		if fi, err := os.Lstat(p); err == nil {
			if st, ok := fi.Sys().(*syscall.Stat_t); ok && st.Uid != uint32(os.Geteuid()) {
				return p, st.Uid
			}
			return "", 0
		}
		if p == filepath.Dir(p) {
			return "", 0
		}
	}
}

// greet says hello and waits for the answer.
func (c *Conn) greet(ctx context.Context, path string, h *wire.Hello) (*wire.Welcome, *os.File, error) {
	if uid := uint32(os.Geteuid()); c.peer.UID != uid {
		return nil, nil, errs.New(errs.CodePermission, "the node at %s is user %d's, this process is user %d's", path, c.peer.UID, uid)
	}
	if h.Version == 0 {
		h.Version, h.MinVersion = wire.Version, wire.MinVersion
	}
	// The end of ctx makes the read below fail at once.
	stop := context.AfterFunc(ctx, func() { _ = c.t.setReadDeadline(time.Unix(1, 0)) })
	if err := c.sayHello(h); err != nil {
		stop()
		return nil, nil, err
	}
	m, err := c.first(ctx)
	if !stop() {
		return nil, nil, context.Cause(ctx)
	}
	switch {
	case err == io.EOF, c.Gone():
		return nil, nil, errs.New(errs.CodeDisconnected, "process %d at %s closed the connection without a word: it is no node of Mobula, or it has just died", c.peer.PID, path)
	case errors.Is(err, errs.ErrProtocol):
		return nil, nil, errs.New(errs.CodeProtocol, "process %d at %s does not answer as a node of Mobula does: %s", c.peer.PID, path, errs.From(err).Msg)
	case err != nil:
		return nil, nil, err
	}
	switch m := m.(type) {
	case *wire.Welcome:
		if m.Version < wire.MinVersion || m.Version > h.Version {
			return nil, nil, errs.New(errs.CodeVersion, "the node at %s chose version %d, this build speaks %d to %d", path, m.Version, wire.MinVersion, wire.Version)
		}
		c.version = m.Version
		return m, c.rx.TakeFile(), nil
	case *wire.Bye:
		if m.Err == nil {
			return nil, nil, errs.New(errs.CodeProtocol, "the node at %s refused without a reason", path)
		}
		return nil, nil, m.Err
	}
	return nil, nil, errs.New(errs.CodeProtocol, "the node at %s answered Hello with %v", path, m.Kind())
}

// sayHello writes h past the connection's queue: a node that refuses before it has read
// anything has closed its end, but what it said can still be read.
func (c *Conn) sayHello(h *wire.Hello) error {
	o := wire.NewFrameWriter(0)
	if err := o.Add(h, nil); err != nil {
		return err
	}
	err := c.writeAll(o.Parts(nil), c.cfg.HandshakeTimeout)
	if err != nil && !errors.Is(err, unix.EPIPE) && !errors.Is(err, unix.ECONNRESET) {
		return c.disconnected("hello", err)
	}
	return nil
}

// writeAll writes parts, waiting for room for at most d.
func (c *Conn) writeAll(parts []wire.Part, d time.Duration) error {
	until := time.Now().Add(d)
	for c.rest = parts; ; {
		if err := c.try(); err != nil || len(c.rest) == 0 {
			return err
		}
		left := time.Until(until)
		if left <= 0 {
			return os.ErrDeadlineExceeded
		}
		c.t.awaitRoom(left)
	}
}
