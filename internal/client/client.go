package client

import (
	"context"
	"log/slog"
	"time"

	"mobula/internal/direct"
	"mobula/internal/direct/shell"
	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/internal/lend"
	"mobula/wire"
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
	RequestTimeout time.Duration // timeout of a Request whose context has no deadline; 0: 30 s

	// Explain gives a line on why an object is not there, for the warning. May be nil.
	Explain func(ctx context.Context, id ids.ObjectID) string

	// Reconnect is called when the connection is gone; see the package's comment. nil:
	// every pending and later operation fails.
	Reconnect func(ctx context.Context, cause error) (Session, error)

	// Sample gives a new task its trace: parent is the caller's, zero if it has none. nil: the
	// caller's, whatever it is.
	Sample func(parent wire.TraceContext, task ids.TaskID) wire.TraceContext

	// Waits is called when a goroutine begins to wait for an answer; that must not be the goroutine that calls
	// Deliver. It does not block. May be nil.
	Waits func()

	// Lender has connections that a goroutine may read itself while it waits for an answer. May be nil.
	Lender *lend.Lender

	// Mailboxes are the actors in this process that calls go straight to. nil: all calls go by the owner. Apart: there may be channels to actors in other processes.
	Mailboxes *shell.Mailboxes
	Apart     bool

	// Holdings adds what a worker's executor holds to the answer to the owner's Resync.
	Holdings func(h *wire.Holdings)
}

// Client is one process' side of its connection to the node. All methods are safe for concurrent use, except
// Deliver, which one goroutine at a time may call.
//
// It is composed of parts, listed from the lowest to the highest, each with its own state, locks and methods; their exported
// methods are the client's. A part calls those below it directly, and those above it through an interface that it declares.
type Client struct {
	base                   // the configuration, the client's lifetime
	clock                  // the node's
	memory                 // the node's segment
	handles                // what this process holds, and what it has released but not reported
	credit                 // how many more bytes the owner takes
	outbox                 // the way to the node
	told         toldWaits // waits of which the owner hears
	gets                   // values, and waits for them
	straight     straight  // calls of actors that go straight; its methods are those of package shell
	submits                // tasks
	puts                   // objects that this process makes
	announcing             // references that leave with values of other programs
	streams                // streams that it reads
	actorWatches           // states of actors
	requests               // to the node's service for requests off a task's path
	watchers               // waits for many objects at once; rooms of actors
	followed               // tasks that end with a context
	collector              // runs the garbage collector
	rejoining              // reconnects to a node that was gone
}

// New makes a client over an open connection.
func New(cfg Config) *Client {
	cfg = cfg.withDefaults()
	c := &Client{base: base{cfg: cfg, log: cfg.Log, id: cfg.Welcome.Client, inline: int(cfg.Welcome.InlineMax), dead: make(chan struct{})}}
	if c.inline == 0 {
		c.inline = wire.InlineMax
	}
	c.root.Client, c.root.Task = c, cfg.Welcome.Root
	c.life, c.end = context.WithCancel(context.Background())
	b, o := &c.base, &c.outbox
	c.clock.set(cfg.Welcome)
	c.memory.base = b
	c.memory.of.Store(&cfg.Memory)
	c.handles.cacheMax = cfg.CacheBytes
	c.handles.releaser.up, c.handles.callers = c, &c.straight
	o.base, o.handles, o.up = b, &c.handles, c
	o.port = cfg.Port
	o.replay, o.credit = cfg.Reconnect != nil, &c.credit
	c.credit.base = b
	c.submits = submits{base: b, handles: &c.handles, outbox: o, credit: &c.credit, straight: &c.straight}
	c.straight.base, c.straight.handles, c.straight.outbox, c.straight.gets, c.straight.clock = b, &c.handles, o, &c.gets, &c.clock
	c.straight.enter(cfg.Mailboxes)
	c.told.base, c.told.outbox = b, o
	c.gets.base, c.gets.memory, c.gets.handles, c.gets.outbox, c.gets.told = b, &c.memory, &c.handles, o, &c.told
	c.gets.soon.every, c.gets.long.every = tellWaitAfter, b.cfg.WarnAfter
	c.puts.base, c.puts.memory, c.puts.handles, c.puts.outbox, c.puts.credit = b, &c.memory, &c.handles, o, &c.credit
	c.announcing.base, c.announcing.outbox, c.announcing.gets = b, o, &c.gets
	c.streams.base, c.streams.handles, c.streams.outbox = b, &c.handles, o
	c.actorWatches.base, c.actorWatches.outbox, c.actorWatches.straight = b, o, &c.straight
	c.requests.base, c.requests.outbox, c.requests.turns = b, o, freeTurns()
	c.watchers = watchers{base: b, handles: &c.handles, outbox: o, credit: &c.credit, gets: &c.gets, straight: &c.straight, rooms: new(rooms)}
	c.followed.base, c.followed.straight, c.followed.streams = b, &c.straight, &c.streams
	c.collector.base, c.collector.outbox = b, o
	c.rejoining = rejoining{base: b, clock: &c.clock, memory: &c.memory, handles: &c.handles, outbox: o, credit: &c.credit, puts: &c.puts,
		streams: &c.streams, actorWatches: &c.actorWatches, requests: &c.requests, followed: &c.followed, straight: &c.straight, gets: &c.gets}
	c.announcing.enter(c)
	return c
}

func (cfg Config) withDefaults() Config {
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
	return cfg
}

// Deliver takes a batch of messages from the node, in order.
func (c *Client) Deliver(batch []wire.Msg) {
	for _, m := range batch {
		c.Dispatch(m)
	}
}

// Dispatch takes one message from the node. Kinds that are unknown to a client are ignored: a newer node may have
// more.
func (c *Client) Dispatch(m wire.Msg) {
	switch m := m.(type) {
	case *wire.Resolved:
		c.gets.resolved(m)
	case *wire.StreamItem:
		c.streams.streamed(m)
	case *wire.Created:
		c.puts.created(m)
	case *wire.Reply:
		c.requests.replied(m)
	case *wire.ActorNews:
		c.actorWatches.actorNews(m)
	case *wire.Credit:
		c.credit.add(m.Bytes)
	case *wire.Resync:
		c.rejoining.resync(m)
	case *wire.Collect:
		c.collector.collect()
	case *wire.MapFile:
		c.memory.mapFile(m)
	case *wire.UnmapFile:
		c.memory.unmapFile(m)
	case *wire.Way:
		c.straight.way(m)
	case *wire.Over:
		c.straight.over(m)
	case *wire.Marked:
		c.straight.marks.marked(m)
	case *wire.Adopted:
		c.straight.adopted(m.Task)
	case *wire.StillWaits:
		c.told.still(m)
	case *wire.CannotBegin:
		c.straight.cannotBegin(m)
	case *wire.CancelCall:
		c.straight.cancelled(m)
	case *wire.CancelMade:
		c.straight.cancelMade(m.Task, direct.Wish(m.Wish))
	case *wire.Bye:
		err := gone(errs.New(errs.CodeShutdown, "the node said goodbye"))
		if m.Err != nil {
			err = m.Err
		}
		c.rejoining.Disconnected(nil, err)
	}
}

// Close tells the owner of the last releases, fails whatever is pending with
// ErrShutdown, closes the port and waits for the client's goroutines, at most until ctx
// ends. Closing again does nothing.
func (c *Client) Close(ctx context.Context) error {
	if c.Err() == nil {
		c.straight.tellEnded()
		c.outbox.Flush()
	}
	c.closed.Store(true)
	c.announcing.leave(c)
	c.rejoining.kill(errs.New(errs.CodeShutdown, "the client was closed"))
	c.outbox.mu.Lock()
	port := c.outbox.port
	c.outbox.port = nil
	c.outbox.mu.Unlock()
	var err error
	if port != nil {
		if c.cfg.Reconnect != nil { // a driver in another process: unmap the segment too
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
