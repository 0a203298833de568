package conn

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"mobula/internal/errs"
	"mobula/wire"
)

// Config of a connection. The zero value means the defaults.
type Config struct {
	SoftBacklog      int           // bytes not yet written above which Send waits; default 4 MiB
	HardBacklog      int           // bytes above which TrySend refuses; default 64 MiB
	WriteTimeout     time.Duration // the other side reads nothing for so long: the connection fails; default 60 s
	Patient          bool          // it fails only if the process at the other end is gone too: one that is stopped is waited for
	Linger           time.Duration // Close waits so long for what is not yet written; default 5 s
	HandshakeTimeout time.Duration // for the first message either way; default 5 s
}

func (c Config) withDefaults() Config {
	setDefault(&c.SoftBacklog, 4<<20)
	setDefault(&c.HardBacklog, 64<<20)
	setDefault(&c.WriteTimeout, 60*time.Second)
	setDefault(&c.Linger, 5*time.Second)
	setDefault(&c.HandshakeTimeout, 5*time.Second)
	return c
}

func setDefault[T ~int | ~int64](v *T, d T) {
	if *v == 0 {
		*v = d
	}
}

// Conn is a connection of the local protocol: ordered messages either way, whatever the transport. Sending is
// safe for concurrent use; one goroutine at a time receives. An idle connection holds no
// buffers and no goroutine of its own.
type Conn struct {
	t       transport
	cfg     Config
	peer    Peer
	version uint32 // agreed

	mu        sync.Mutex        // guards the fields up to the blank line
	out       *wire.FrameWriter // what nobody writes yet
	spare     *wire.FrameWriter // the other one of the two, while it is not being written
	pending   int               // bytes in out and on their way
	writing   bool              // somebody has the writer's role
	scheduled bool              // a goroutine is on its way to take it
	lastWrite int64             // when a write ended, nanoseconds since epoch
	room      chan struct{}
	idle      chan struct{} // closed when a closing connection has written everything
	closing   bool
	fail      error       // why the connection is over
	failed    func(error) // see Session.Failed; nil: nobody is told
	opts      wire.OptionsCache

	// Of whoever has the writer's role.
	sending *wire.FrameWriter
	parts   []wire.Part
	rest    []wire.Part

	rx receiver

	gone   atomic.Bool // a write or read has found that the other side has closed
	closed sync.Once   // of t

	sentBytes, recvMsgs, recvBytes atomic.Uint64
}

// epoch is the zero of lastWrite: a monotonic reading is cheaper than a whole time.
var epoch = time.Now()

// newConn makes a connection of a transport, which is the connection's from now on.
func newConn(t transport, peer Peer, cfg Config) *Conn {
	c := &Conn{t: t, cfg: cfg.withDefaults(), peer: peer, version: wire.Version}
	c.lastWrite = -int64(time.Hour)
	c.rx.init(c)
	return c
}

// overSocket makes a connection of uc, and takes that over unless there is an error.
func overSocket(uc *net.UnixConn, cfg Config, hot, files bool) (*Conn, error) {
	peer, err := peerOf(uc)
	if err != nil {
		return nil, err
	}
	s, err := newSocket(uc, hot, files)
	if err != nil {
		return nil, err
	}
	return newConn(s, peer, cfg), nil
}

// Peer is the process at the other end.
func (c *Conn) Peer() Peer { return c.peer }

// Gone tells that the connection failed because the other side had closed it or died.
func (c *Conn) Gone() bool { return c.gone.Load() }

// Version is the protocol version that both sides agreed on.
func (c *Conn) Version() uint32 { return c.version }

// Counts are a connection's totals.
type Counts struct{ SentBytes, RecvMsgs, RecvBytes uint64 }

// Counts returns the totals so far.
func (c *Conn) Counts() Counts {
	return Counts{c.sentBytes.Load(), c.recvMsgs.Load(), c.recvBytes.Load()}
}

// Backlog is the number of bytes that were sent but not yet written.
func (c *Conn) Backlog() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.pending
}

// Close writes what was sent before it, for at most Config.Linger, and closes the
// connection. Messages of Sends that begin after it are refused.
func (c *Conn) Close() error {
	c.mu.Lock()
	if c.fail != nil {
		err := c.fail
		c.mu.Unlock()
		c.shut()
		if errors.Is(err, errs.ErrShutdown) {
			return nil
		}
		return err
	}
	if c.idle == nil {
		c.idle = make(chan struct{})
	}
	c.closing = true
	idle, busy := c.idle, c.writing || c.scheduled
	c.wake()
	c.mu.Unlock()
	if busy {
		t := time.NewTimer(c.cfg.Linger)
		defer t.Stop()
		select {
		case <-idle:
		case <-t.C:
			err := errs.New(errs.CodeDisconnected, "closed with %d bytes unwritten: the other side (process %d) read nothing for %v", c.Backlog(), c.peer.PID, c.cfg.Linger)
			c.Fail(err)
			return err
		}
	}
	c.Fail(errs.New(errs.CodeShutdown, "the connection was closed"))
	if err := c.failure(); !errors.Is(err, errs.ErrShutdown) {
		return err // it broke while the rest was written
	}
	return nil
}

// Fail closes the connection at once, without writing what is pending. From now on Send
// and Recv return err. The first failure counts.
func (c *Conn) Fail(err error) {
	if tell := c.end(err); tell != nil {
		tell(err) // before the other side can see it
	}
	c.rx.hot.leave() // perhaps nobody reads any more
	c.shut()
}

// endWriting ends a connection that the other side has closed: Recv returns what that side sent before, then err.
func (c *Conn) endWriting(err error) {
	c.end(err)
	c.t.endReading()
}

func (c *Conn) shut() {
	c.closed.Do(func() { _ = c.t.Close() }) // the reason of the failure is c.fail
}

// end keeps the first reason. Where that is err it gives whom to tell, if anybody.
func (c *Conn) end(err error) (tell func(error)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.fail != nil {
		return nil
	}
	c.fail = err
	discard(c.out)
	c.out = nil
	c.wake()
	if c.idle != nil && !c.writing {
		c.finish()
	}
	return c.failed
}

// EndReading ends the stream behind what the other side has sent so far: Recv returns that, then io.EOF. It is for a
// process that is gone while a child of its own still has the socket, which would keep the connection open.
func (c *Conn) EndReading() { c.t.endReading() }

// discard closes the files of messages that were written, or never will be.
func discard(o *wire.FrameWriter) {
	if o != nil {
		o.CloseFiles()
	}
}

// wake lets every waiting Send look again. Called with mu held.
func (c *Conn) wake() {
	if c.room != nil {
		close(c.room)
		c.room = nil
	}
}

// finish tells Close that nothing is left. Called with mu held.
func (c *Conn) finish() {
	select {
	case <-c.idle:
	default:
		close(c.idle)
	}
}

// failure is why the connection is over, as Recv and Send say it.
func (c *Conn) failure() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.fail
}

// disconnected turns a system error of a dead connection into one with a code.
func (c *Conn) disconnected(op string, err error) error {
	var coded *errs.Error
	switch {
	case errors.As(err, &coded):
		return err
	case c.failure() != nil:
		return c.failure()
	case err == io.EOF, errors.Is(err, os.ErrDeadlineExceeded):
		return err
	case errors.Is(err, unix.EPIPE), errors.Is(err, unix.ECONNRESET):
		c.gone.Store(true)
		return errs.New(errs.CodeDisconnected, "process %d closed the connection or died (%s: %v)", c.peer.PID, op, err)
	}
	return errs.New(errs.CodeDisconnected, "connection to process %d: %v", c.peer.PID, fmt.Errorf("%s: %w", op, err))
}
