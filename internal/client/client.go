package client

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/internal/steady"
	"mobula/wire"
	"mobula/wire/conn"
)

// Config says how a client works. Port, Welcome and, where values are larger than
// Welcome.InlineMax, Memory are required.
type Config struct {
	Port    Port
	Welcome *wire.Welcome
	Memory  Memory
	Log     *slog.Logger // nil: slog.Default

	CacheBytes     int64         // inline results kept for Get; 0: 64 MiB
	WarnAfter      time.Duration // a Get or Create that waits longer logs a warning; 0: 60 s, as Ray's fetch_warn_timeout
	FetchTimeout   time.Duration // a Get waits no longer for the bytes of a stored object; 0: 600 s, as Ray's fetch_fail_timeout
	RequestTimeout time.Duration // of a Request whose context has no deadline; 0: 30 s

	// Explain gives a line on why an object is not there, for the warning. May be nil.
	Explain func(ctx context.Context, id ids.ObjectID) string

	// Reconnect is called when the connection is gone; see the package's comment. nil:
	// every pending and later operation fails.
	Reconnect func(ctx context.Context, cause error) (Session, error)

	// Sample gives a new task its trace: parent is the caller's, zero if it has none. nil: the
	// caller's, whatever it is.
	Sample func(parent wire.TraceContext, task ids.TaskID) wire.TraceContext

	// Waits is called when a goroutine begins to wait for an answer: the one that calls Deliver
	// must not be that goroutine. It does not block. May be nil.
	Waits func()

	// Lender has connections that a goroutine which waits for an answer may read itself. May be nil.
	Lender *conn.Lender

	// Holdings adds what a worker's executor holds to the answer to the owner's Resync.
	Holdings func(h *wire.Holdings)
}

// Client is one process' side of the conversation with its node. All methods are safe
// for concurrent use, except Deliver, which one goroutine at a time calls.
type Client struct {
	cfg    Config
	log    *slog.Logger
	client ids.ClientID
	inline int
	root   TaskContext
	clock  atomic.Pointer[steady.Clock]

	memory  atomic.Pointer[Memory]
	table   table
	out     outbox
	rel     releaser
	credit  credit
	waiters sync.Pool // of *waiter

	req      atomic.Uint64
	creates  pending[*creation]
	requests requests
	streams  streams
	watches  actorWatches
	follow   followed
	rooms    *rooms
	collect  collector

	dead     chan struct{} // closed when the client has failed or was closed
	fail     sync.Once
	cause    error // why; written before dead is closed
	life     context.Context
	end      context.CancelFunc
	joining  atomic.Bool    // a reconnect is under way
	sessions atomic.Uint32  // reconnects that found the node
	tasks    sync.WaitGroup // the client's own goroutines
	shutdown sync.Mutex     // guards tasks.Add against Wait
	closed   atomic.Bool    // by Close
}

// New makes a client over an open connection.
func New(cfg Config) *Client {
	if cfg.CacheBytes == 0 {
		cfg.CacheBytes = 64 << 20
	}
	if cfg.WarnAfter == 0 {
		cfg.WarnAfter = time.Minute
	}
	if cfg.FetchTimeout == 0 {
		cfg.FetchTimeout = 10 * time.Minute
	}
	if cfg.RequestTimeout == 0 {
		cfg.RequestTimeout = 30 * time.Second
	}
	if cfg.Log == nil {
		cfg.Log = slog.Default()
	}
	c := &Client{cfg: cfg, log: cfg.Log, client: cfg.Welcome.Client, inline: int(cfg.Welcome.InlineMax), rooms: new(rooms), requests: requests{turns: freeTurns()}, dead: make(chan struct{})}
	if c.inline == 0 {
		c.inline = wire.InlineMax
	}
	c.life, c.end = context.WithCancel(context.Background())
	c.setClock(cfg.Welcome)
	c.memory.Store(&cfg.Memory)
	c.table.cacheMax = cfg.CacheBytes
	c.rel.c = c
	c.out.port = cfg.Port
	c.out.replay = cfg.Reconnect != nil
	c.root.Client, c.root.Task = c, cfg.Welcome.Root
	return c
}

// Root is the process' own implicit task: what code outside any task submits and puts
// belongs to it.
func (c *Client) Root() *TaskContext { return &c.root }

// ID is the id that the node gave this client.
func (c *Client) ID() ids.ClientID { return c.client }

// InlineMax is the size in bytes up to which a value travels inside messages.
func (c *Client) InlineMax() int { return c.inline }

// SegmentSize is how many bytes the store holds; 0: its node did not say.
func (c *Client) SegmentSize() uint64 { return c.cfg.Welcome.SegmentSize }

// Handles counts the objects that this process holds.
func (c *Client) Handles() int { return c.table.len() }

// Done is closed when the client can do nothing any more; Err says why.
func (c *Client) Done() <-chan struct{} { return c.dead }

// Closed tells whether Close was called: what Data holds of the segment must not be read any more.
func (c *Client) Closed() bool { return c.closed.Load() }

// Err is nil while the client works.
func (c *Client) Err() error {
	select {
	case <-c.dead:
		return c.cause
	default:
		return nil
	}
}

// failure is Err, and never nil.
func (c *Client) failure() error {
	if err := c.Err(); err != nil {
		return err
	}
	return errs.New(errs.CodeOwnerDied, "the connection to the node is gone")
}

// Deliver takes a batch of messages from the node, in order.
func (c *Client) Deliver(batch []wire.Msg) {
	for _, m := range batch {
		c.Dispatch(m)
	}
}

// Dispatch takes one message from the node. Kinds that are not a client's are ignored: a
// newer node may know more.
func (c *Client) Dispatch(m wire.Msg) {
	switch m := m.(type) {
	case *wire.Resolved:
		c.resolved(m)
	case *wire.StreamItem:
		c.streamed(m)
	case *wire.Created:
		c.created(m)
	case *wire.Reply:
		c.replied(m)
	case *wire.ActorNews:
		c.actorNews(m)
	case *wire.Credit:
		c.credit.add(m.Bytes)
	case *wire.Resync:
		c.resync(m)
	case *wire.Collect:
		c.collect.start(c)
	case *wire.MapFile:
		c.mapFile(m)
	case *wire.UnmapFile:
		c.unmapFile(m)
	case *wire.Bye:
		err := gone(errs.New(errs.CodeShutdown, "the node said goodbye"))
		if m.Err != nil {
			err = m.Err
		}
		c.Disconnected(nil, err)
	}
}

// kill makes every pending and later operation fail with cause.
func (c *Client) kill(cause error) {
	c.fail.Do(func() {
		defer c.follow.close() // after the client is dead: nothing is added any more
		c.shutdown.Lock()      // whoever starts a goroutine has counted it, or sees that we are dead
		defer c.shutdown.Unlock()
		c.cause = cause
		close(c.dead)
		c.end()
		c.rel.close()
	})
}

func (c *Client) waits() {
	if c.cfg.Waits != nil {
		c.cfg.Waits()
	}
}

// Go runs f in a goroutine that Close waits for, which must end when Done is closed; false where the client is closing.
func (c *Client) Go(f func()) bool { return c.start(f) }

// start runs f as one of the client's own goroutines, unless it is closing.
func (c *Client) start(f func()) bool {
	c.shutdown.Lock()
	defer c.shutdown.Unlock()
	if c.Err() != nil {
		return false
	}
	c.tasks.Go(f)
	return true
}

// enter counts the goroutine that runs as one of the client's own, until tasks.Done, unless the client is closing.
func (c *Client) enter() bool {
	c.shutdown.Lock()
	defer c.shutdown.Unlock()
	if c.Err() != nil {
		return false
	}
	c.tasks.Add(1)
	return true
}

// Close tells the owner of the last releases, fails whatever is pending with
// ErrShutdown, closes the port and waits for the client's goroutines, at most until ctx
// ends. Closing again does nothing.
func (c *Client) Close(ctx context.Context) error {
	if c.Err() == nil {
		c.Flush()
	}
	c.closed.Store(true)
	c.kill(errs.New(errs.CodeShutdown, "the client was closed"))
	c.out.mu.Lock()
	port := c.out.port
	c.out.port = nil
	c.out.mu.Unlock()
	var err error
	if port != nil {
		if c.cfg.Reconnect != nil { // a driver of another process: its mapping goes too
			_ = port.Send(&wire.Bye{}) // so that pins need not wait for the process' end
		}
		err = port.Close()
	}
	done := make(chan struct{})
	go func() { c.tasks.Wait(); close(done) }()
	select {
	case <-done:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
