package conn

import (
	"context"
	"errors"
	"net"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"mobula/internal/errs"
	"mobula/wire"
)

// A Session is what the node makes of a client that it accepts.
type Session struct {
	Welcome *wire.Welcome // Version is filled in
	Segment *os.File      // travels with the Welcome; the caller's to close; nil: none
	// Run has the connection from when the Welcome was sent, on the connection's own
	// goroutine, until it returns; then the connection is closed. If the Welcome could
	// not be sent Run gets the error and a closed connection, to undo what was prepared.
	// Required.
	Run func(c *Conn, err error)
	// Failed is told why this side ends the connection, if it does, before the other side can see the end: once, on any
	// goroutine. It may not block. nil: nobody is told.
	Failed func(why error)
}

// Handshake decides about a client that said hello in a version that both speak. Its
// error is sent to the client as Bye. It runs on the connection's goroutine.
type Handshake func(h *wire.Hello, p Peer) (*Session, error)

// Serve accepts connections until Close, and returns nil then. A connection of another
// user is told errs.ErrPermission and closed; so is one of another version, with
// errs.ErrVersion. One that says nothing for Config.HandshakeTimeout is dropped. Each
// costs one goroutine.
func (l *Listener) Serve(decide Handshake) error {
	pause := time.Duration(0)
	for {
		err := l.accept(decide)
		switch {
		case errors.Is(err, net.ErrClosed):
			return nil
		case err == nil:
			pause = 0
			continue
		}
		// Out of descriptors, most likely: those that are connected go on, and this one
		// waits in the socket's queue.
		pause = min(max(2*pause, 5*time.Millisecond), time.Second)
		select {
		case <-time.After(pause):
		case <-l.done:
		}
	}
}

// accept starts the next connection. One for which there are no descriptors left is kept
// for the next call.
func (l *Listener) accept(decide Handshake) (err error) {
	uc := l.kept
	if l.kept = nil; uc == nil {
		if uc, err = l.ul.AcceptUnix(); err != nil {
			return err
		}
	}
	c, err := overSocket(uc, l.cfg, false, false)
	if err == nil {
		l.start(c, decide)
		return nil
	}
	scarce := errors.Is(err, unix.EMFILE) || errors.Is(err, unix.ENFILE) || errors.Is(err, unix.ENOMEM)
	select {
	case <-l.done:
		scarce = false
	default:
	}
	if scarce {
		l.kept = uc
		return err
	}
	_ = uc.Close() // dead before it began
	return nil
}

func (l *Listener) start(c *Conn, decide Handshake) {
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		_ = c.Close()
		return
	}
	l.conns[c] = struct{}{}
	l.wg.Add(1)
	l.mu.Unlock()
	go func() {
		defer l.wg.Done()
		l.session(c, decide)
		_ = c.Close() // Run may have closed it; an error was its to see
		l.mu.Lock()
		delete(l.conns, c)
		l.mu.Unlock()
	}()
}

// session is one connection's life.
func (l *Listener) session(c *Conn, decide Handshake) {
	if c.peer.UID != l.uid {
		c.refuse(errs.New(errs.CodePermission, "this node serves user %d, the connection is user %d's (process %d)", l.uid, c.peer.UID, c.peer.PID))
		return
	}
	h, err := c.hello()
	if err != nil {
		c.refuse(err)
		return
	}
	if c.version, err = agree(h.Version, h.MinVersion); err != nil {
		c.refuse(err)
		return
	}
	s, err := decide(h, c.peer)
	if err != nil {
		c.refuse(err)
		return
	}
	s.Welcome.Version = c.version
	c.mu.Lock()
	c.failed = s.Failed
	c.mu.Unlock()
	if s.Segment != nil {
		err = c.SendFD(s.Welcome, s.Segment)
	} else {
		err = c.TrySend(s.Welcome)
	}
	if err != nil {
		c.Fail(err)
	}
	s.Run(c, err)
}

// maxHello is the limit of a frame before a client is known: its registry is in it.
const maxHello = 4 << 20

// hello waits for the client's first message.
func (c *Conn) hello() (*wire.Hello, error) {
	c.rx.Limit = maxHello
	m, err := c.first(context.Background())
	if err != nil {
		return nil, err
	}
	h, ok := m.(*wire.Hello)
	if !ok {
		return nil, errs.New(errs.CodeProtocol, "the first message is %v, not Hello", m.Kind())
	}
	c.rx.Limit = wire.MaxFrame
	return h, nil
}

// first waits for one message, for Config.HandshakeTimeout.
func (c *Conn) first(ctx context.Context) (wire.Msg, error) {
	if err := c.t.setReadDeadline(time.Now().Add(c.cfg.HandshakeTimeout)); err != nil {
		return nil, err
	}
	if ctx.Err() != nil { // ended before, its deadline was overwritten
		return nil, context.Cause(ctx)
	}
	batch, err := c.Recv()
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return nil, errs.New(errs.CodeProtocol, "process %d said nothing for %v", c.peer.PID, c.cfg.HandshakeTimeout)
	}
	if err != nil {
		return nil, err
	}
	if len(batch) > 1 {
		c.rx.early = batch[1:]
	}
	return batch[0], c.t.setReadDeadline(time.Time{})
}

// refuse tells the other side why and ends the connection.
func (c *Conn) refuse(err error) {
	if c.TrySend(&wire.Bye{Err: errs.From(err)}) == nil {
		_ = c.Close() // err is the reason
	}
	c.Fail(err)
}

// agree chooses the version that both sides speak.
func agree(version, minVersion uint32) (uint32, error) {
	v := min(version, wire.Version)
	if version == 0 || v < minVersion || v < wire.MinVersion {
		return 0, errs.New(errs.CodeVersion, "the client speaks versions %d to %d, this node %d to %d: use binaries at most one release apart", minVersion, version, wire.MinVersion, wire.Version)
	}
	return v, nil
}
