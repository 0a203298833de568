package shell

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"

	"mobula/actors"
	"mobula/gcs"
	"mobula/internal/errs"
	"mobula/internal/inbox"
	"mobula/internal/trust"
	"mobula/internal/trust/credentials"
	"mobula/remote"
	"mobula/remote/membership"
)

// Config configures the control plane of a node. Without Servers and Tables its server is embedded in this process.
type Config struct {
	Dir     string            // of the embedded server's files
	Listen  *ListenConfig     // has the embedded server listen, as one of a cluster's; nil: it listens nowhere
	Servers []string          // URLs of the NATS servers to use instead, of one cluster
	Judges  bool              // with Servers, without Live: the node is a control-plane server of a cluster whose tables are in these servers
	Live    *credentials.Live // with Servers: they are a cluster's own, each HOST:PORT, and this is who the node is
	Epoch   uint64            // with Live: the life of the node's home, if it has begun
	Dialer  net.Dialer        // with Live: what it connects with
	Tables  Tables            // what to use instead of any server, in tests; nil: nothing
	Node    string
	Logger  *slog.Logger // nil: silent

	// What the tables say of nodes, on the goroutine of the actor: these must not block. nil: nobody wants to know.
	Heard  func(gcs.NodeRecord) // a node's row was written, or is shown again: its number of heartbeats tells
	Fenced func(remote.Life)    // the home's lives up to this one are over, this node's own too
	Left   func(remote.Life)    // a node has ended in order

	Bundled func(trust.SignedBundle) // the cluster's trust bundle was written, or is shown again; likewise
}

// shared tells whether other nodes use the same tables.
func (c *Config) shared() bool { return len(c.Servers) > 0 || c.Listen != nil }

// GCS is the control plane's actor and what must outlive its core: the server, the
// connection, the tables and the requests without an answer.
type GCS struct {
	cfg  Config
	ref  *actors.Ref[gcs.Event]
	up   chan struct{}                           // closed when ref is set
	work map[gcs.Bucket]*inbox.Inbox[gcs.Effect] // calls to the server, for each table in order: no heartbeat waits for another table
	wg   sync.WaitGroup
	ctx  context.Context // ends when the component stops
	stop context.CancelFunc

	// Set by open on the actor's goroutine, kept while they work.
	srv       *Server // nil: the control plane is elsewhere
	nc        *nats.Conn
	tables    Tables
	served    *Served // the tables, where the service gives them; nil: they are not
	trust     *Trust  // of a control-plane server of a cluster
	service   micro.Service
	feed      *feed // of a server of a cluster
	desk      *desk
	gathering *gathering         // of a server of a cluster
	unwatch   context.CancelFunc // ends the watches that feed the present core
	notAfter  func()             // ends the present core's timer

	inStep atomic.Int32 // copies of each table, as counted last

	mu      sync.Mutex
	nextID  uint64             // guarded by mu
	waiting map[uint64]*waiter // guarded by mu
	closed  bool               // guarded by mu
	self    *gcs.Announce      // guarded by mu: what the node says of itself; nil: nothing yet
}

type waiter struct {
	req    gcs.Request
	done   func(gcs.Reply)
	blamed int // how many cores it has brought down that were given it as they began
}

// Start adds the control plane to the tree and waits until its server is ready, some 15 ms where it is embedded.
func Start(parent actors.Parent, cfg Config) (*GCS, error) {
	g := &GCS{cfg: cfg, up: make(chan struct{}), work: make(map[gcs.Bucket]*inbox.Inbox[gcs.Effect]), waiting: make(map[uint64]*waiter)}
	for _, b := range gcs.Buckets {
		g.work[b] = inbox.New[gcs.Effect]()
	}
	g.ctx, g.stop = context.WithCancel(context.Background())
	ref, err := actors.Spawn(parent, actors.Spec[gcs.Event, gcs.Effect]{
		Kind: "gcs", Name: "gcs",
		New:      g.open,
		Do:       g.do,
		Stop:     g.close,
		OnPoison: func(_ *actors.Ref[gcs.Event], ev gcs.Event, err error) { g.poisoned(ev, err) },
		Policy:   actors.Policy{MaxRestarts: 10, Window: time.Minute},
	})
	if err != nil {
		close(g.up)
		g.close()
		return nil, err
	}
	g.ref = ref
	close(g.up)
	return g, nil
}

// open builds a core: server and tables once, a fresh view and the unanswered requests
// each time.
func (g *GCS) open(start actors.Start) (actors.Core[gcs.Event, gcs.Effect], []gcs.Event, error) {
	if g.tables == nil {
		if err := g.connect(); err != nil {
			return nil, nil, err
		}
		for _, work := range g.work {
			g.wg.Go(func() { g.serve(work) }) // here, on the actor's goroutine, as close is: neither overtakes the other
		}
		if g.cfg.Listen != nil {
			g.wg.Go(g.grow)
		}
	}
	if g.unwatch != nil { // the watches of the core before this one
		g.unwatch()
		g.tables.Close()
	}
	life, unwatch := context.WithCancel(g.ctx)
	g.unwatch = unwatch
	ctx, cancel := context.WithTimeout(g.ctx, g.patience())
	defer cancel()
	var (
		mu      sync.Mutex
		initial []gcs.Event
		live    bool
	)
	err := g.tables.Watch(life, ctx, func(c gcs.Changed) {
		mu.Lock()
		defer mu.Unlock()
		if !live {
			initial = append(initial, c)
			return
		}
		<-g.up
		_ = g.ref.Send(life, c) // fails only when nobody needs it any more
	})
	if err != nil {
		return nil, nil, g.unled(err)
	}
	mu.Lock()
	defer mu.Unlock()
	live = true
	if start.Restart > 0 { // at the first start the requests are still in the mailbox
		initial = append(initial, g.unanswered(start)...)
	}
	return gcs.NewCore(), initial, nil
}

// unanswered is what a core that follows another is given: the requests without an answer, and what the node says of itself. The request on which the core before
// has panicked comes again by itself, and is dropped when it brings down this core too; so is one on which two cores panicked that were given it here.
func (g *GCS) unanswered(start actors.Start) (out []gcs.Event) {
	if r, ok := start.Blamed.(gcs.Request); ok && g.blame(r.ID) {
		g.poisoned(r, start.Reason)
	}
	again, _ := start.Again.(gcs.Request)
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, id := range slices.Sorted(maps.Keys(g.waiting)) {
		if id != again.ID {
			out = append(out, g.waiting[id].req)
		}
	}
	if g.self != nil {
		out = append(out, *g.self)
	}
	return out
}

// blame notes that a request has brought down a core that was given it as it began; true: a second one.
func (g *GCS) blame(id uint64) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	w := g.waiting[id]
	if w == nil {
		return false
	}
	w.blamed++
	return w.blamed > 1
}

// poisoned answers the request of an event that no core survives. What else is dropped the next core is told again, as it watches the tables.
func (g *GCS) poisoned(ev gcs.Event, err error) {
	why := errs.New(errs.CodeComponentFailed, "the control plane of node %s failed twice on %T and dropped it: %v", g.cfg.Node, ev, err)
	switch ev := ev.(type) {
	case gcs.Request:
		g.reply(gcs.Reply{ID: ev.ID, Err: why})
	case gcs.Answered: // of a call that its request made
		g.reply(gcs.Reply{ID: ev.ID, Err: why})
	}
}

// do runs on the actor's goroutine: a call is queued, a reply handed out. It does not wait for the
// server, whose answers may wait for room in the actor's mailbox; each request has one call at a time.
func (g *GCS) do(self *actors.Ref[gcs.Event], e gcs.Effect) {
	switch e := e.(type) {
	case gcs.After:
		if g.notAfter != nil {
			g.notAfter()
		}
		g.notAfter = self.After(e.D, e.Ev)
	case gcs.Heard:
		tell(g.cfg.Heard, e.Record)
	case gcs.TellBeat:
		g.tellBeat(e.Heartbeat)
	case gcs.Fenced:
		tell(g.cfg.Fenced, e.Life)
	case gcs.Left:
		tell(g.cfg.Left, e.Life)
	case gcs.Bundled:
		tell(g.cfg.Bundled, e.Bundle)
	case gcs.Reply:
		g.reply(e)
	default:
		b, _, _ := gcs.Touches(e)
		g.work[b].Add(e)
	}
}

func tell[T any](who func(T), what T) {
	if who != nil {
		who(what)
	}
}

func (g *GCS) reply(r gcs.Reply) {
	g.mu.Lock()
	w := g.waiting[r.ID]
	delete(g.waiting, r.ID)
	g.mu.Unlock()
	if w == nil {
		return
	}
	if _, begun := w.req.Op.(gcs.Begin); begun && r.Err == nil && g.served != nil {
		g.served.Life(r.Records[0].(gcs.HomeRecord).Epoch)
	}
	w.done(r)
}

// serve makes the calls to a table, one after the other.
func (g *GCS) serve(work *inbox.Inbox[gcs.Effect]) {
	<-g.up
	for {
		select {
		case <-work.Ready():
		case <-g.ctx.Done():
			return
		}
		for _, e := range work.Take() {
			if g.ctx.Err() != nil {
				return
			}
			_ = g.ref.Send(g.ctx, g.tables.Do(g.ctx, e)) // fails only when the component has stopped
		}
	}
}

// Ask makes a request; done gets its answer on another goroutine, once, and must not block.
func (g *GCS) Ask(op gcs.Op, done func(gcs.Reply)) {
	g.mu.Lock()
	if g.closed {
		g.mu.Unlock()
		done(gcs.Reply{Err: errs.New(errs.CodeShutdown, "the control plane has stopped")})
		return
	}
	g.nextID++
	req := gcs.Request{ID: g.nextID, Op: op}
	g.waiting[req.ID] = &waiter{req: req, done: done}
	g.mu.Unlock()
	if err := g.ref.Post(req); err != nil {
		g.mu.Lock()
		delete(g.waiting, req.ID)
		g.mu.Unlock()
		done(gcs.Reply{ID: req.ID, Err: err})
	}
}

// Announce has the node in the table of nodes, once its home is known, and with every sends heartbeats. A control-plane server of a cluster
// judges by them which lives are over.
func (g *GCS) Announce(r gcs.NodeRecord, every time.Duration) {
	a := gcs.Announce{Record: r, Every: every, Tells: g.served != nil || g.gathering != nil}
	if (g.cfg.Listen != nil || g.cfg.Judges) && every > 0 {
		judge := membership.DefaultJudgeConfig()
		judge.Beat = every
		a.Judge = &judge
	}
	if g.served != nil {
		g.served.Life(r.Epoch)
	}
	g.mu.Lock()
	g.self = &a
	g.mu.Unlock()
	g.ref.Deliver(a)
}

// Follow says which trust bundle the node follows, with all the keys that it names.
func (g *GCS) Follow(number uint64) {
	g.mu.Lock()
	if g.self != nil {
		g.self.Record.Trust = number
	}
	g.mu.Unlock()
	g.ref.Deliver(gcs.Follows{Number: number})
}

// Call is Ask for callers that can wait.
func (g *GCS) Call(ctx context.Context, op gcs.Op) ([]gcs.Record, error) {
	ch := make(chan gcs.Reply, 1)
	g.Ask(op, func(r gcs.Reply) { ch <- r })
	select {
	case r := <-ch:
		return r.Records, r.Err
	case <-ctx.Done():
		return nil, fmt.Errorf("control plane: %T: %w", op, context.Cause(ctx))
	}
}

// Vanish has the component say nothing any more, not even goodbye when it ends: the node's row stays in the table, and its heartbeat is missed.
func (g *GCS) Vanish() {
	g.mu.Lock()
	g.self = nil
	g.mu.Unlock()
	g.stop()
}

// close stops what the component started and answers what is left.
func (g *GCS) close() {
	g.stop() // and with it the watches
	g.wg.Wait()
	if g.service != nil {
		_ = g.service.Stop() // its connection goes next
	}
	if g.desk != nil {
		g.desk.close()
	}
	g.leave()
	if g.nc != nil {
		g.nc.Close() // before the watches: each would wait for a leader, to be taken down there
	}
	if g.feed != nil {
		g.feed.close()
	}
	if g.tables != nil {
		g.tables.Close()
	}
	if g.srv != nil {
		g.srv.Close()
	}
	g.mu.Lock()
	g.closed = true
	left := g.waiting
	g.waiting = nil
	g.mu.Unlock()
	for _, w := range left {
		w.done(gcs.Reply{ID: w.req.ID, Err: errs.New(errs.CodeShutdown, "the control plane has stopped")})
	}
}

// goodbyeTime bounds what the end of a node waits for a control plane that others use to take note of it.
const goodbyeTime = time.Second

// leave takes the node out of the table that others read: it does not live any more, and nobody is to wait for its heartbeat. The row of a later
// life stays.
func (g *GCS) leave() {
	g.mu.Lock()
	self := g.self
	g.mu.Unlock()
	if self == nil || !g.cfg.shared() || g.tables == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), goodbyeTime)
	defer cancel()
	row := g.tables.Do(ctx, gcs.Read{Bucket: gcs.Nodes, Key: self.Record.Key()})
	if r, ok := row.Record.(gcs.NodeRecord); ok && r.Life() == self.Record.Life() {
		_ = g.tables.Do(ctx, gcs.Delete{Bucket: gcs.Nodes, Key: r.Key(), Revision: int64(row.Revision)}) // else its heartbeat is missed
	}
}
