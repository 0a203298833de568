package shell

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"

	"mobula/actors"
	"mobula/gcs"
	"mobula/internal/errs"
	"mobula/internal/inbox"
)

// Config configures the control plane of a node. Without Servers and Tables its server is embedded in this process.
type Config struct {
	Dir     string   // of the embedded server's files
	Servers []string // URLs of the NATS servers to use instead, of one cluster
	Tables  Tables   // what to use instead of any server, in tests; nil: nothing
	Node    string
	Logger  *slog.Logger // nil: silent
}

// GCS is the control plane's actor and what must outlive its core: the server, the
// connection, the tables and the requests without an answer.
type GCS struct {
	cfg  Config
	ref  *actors.Ref[gcs.Event]
	up   chan struct{}            // closed when ref is set
	work *inbox.Inbox[gcs.Effect] // calls to the server, in order
	wg   sync.WaitGroup
	ctx  context.Context // ends when the component stops
	stop context.CancelFunc

	// Set by open on the actor's goroutine, kept while they work.
	srv     *Server // nil: the control plane is elsewhere
	nc      *nats.Conn
	tables  Tables
	service micro.Service
	unwatch context.CancelFunc // ends the watches that feed the present core

	mu      sync.Mutex
	nextID  uint64             // guarded by mu
	waiting map[uint64]*waiter // guarded by mu
	closed  bool               // guarded by mu
	self    *gcs.Announce      // guarded by mu: what the node says of itself; nil: nothing yet
}

type waiter struct {
	req  gcs.Request
	done func(gcs.Reply)
}

// Start adds the control plane to the tree and waits until its server is ready, some 15 ms where it is embedded.
func Start(parent actors.Parent, cfg Config) (*GCS, error) {
	g := &GCS{cfg: cfg, up: make(chan struct{}), work: inbox.New[gcs.Effect](), waiting: make(map[uint64]*waiter)}
	g.ctx, g.stop = context.WithCancel(context.Background())
	ref, err := actors.Spawn(parent, actors.Spec[gcs.Event, gcs.Effect]{
		Kind: "gcs", Name: "gcs",
		New:    g.open,
		Do:     g.do,
		Stop:   g.close,
		Policy: actors.Policy{MaxRestarts: 10, Window: time.Minute},
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
		g.wg.Go(g.serve) // here, on the actor's goroutine, as close is: neither overtakes the other
	}
	if g.unwatch != nil { // the watches of the core before this one
		g.unwatch()
		g.tables.Close()
	}
	life, unwatch := context.WithCancel(g.ctx)
	g.unwatch = unwatch
	ctx, cancel := context.WithTimeout(g.ctx, 10*time.Second)
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
		return nil, nil, err
	}
	mu.Lock()
	defer mu.Unlock()
	live = true
	g.mu.Lock()
	defer g.mu.Unlock()
	if start.Restart > 0 { // at the first start the requests are still in the mailbox
		for _, id := range slices.Sorted(maps.Keys(g.waiting)) {
			initial = append(initial, g.waiting[id].req)
		}
		if g.self != nil {
			initial = append(initial, *g.self)
		}
	}
	return gcs.NewCore(), initial, nil
}

// connect opens the tables, wherever they are.
func (g *GCS) connect() (err error) {
	if g.tables = g.cfg.Tables; g.tables != nil {
		return nil
	}
	if len(g.cfg.Servers) > 0 {
		g.nc, err = dial(g.cfg.Servers, g.cfg.Node)
	} else if g.srv, err = StartServer(ServerConfig{Dir: g.cfg.Dir, Name: g.cfg.Node, Logger: g.cfg.Logger}); err == nil {
		g.nc, err = g.srv.Connect(g.cfg.Node)
	}
	if err != nil {
		return fmt.Errorf("control plane: %w", err)
	}
	ctx, cancel := context.WithTimeout(g.ctx, 10*time.Second)
	defer cancel()
	tables, err := Open(ctx, g.nc, replicas(len(g.cfg.Servers)))
	if err != nil {
		return errs.New(errs.CodeComponentFailed, "control plane: %v", err)
	}
	g.tables = tables
	g.service, err = g.serveQuestions()
	return err
}

// do runs on the actor's goroutine: a call is queued, a reply handed out. It does not wait for the
// server, whose answers may wait for room in the actor's mailbox; each request has one call at a time.
func (g *GCS) do(self *actors.Ref[gcs.Event], e gcs.Effect) {
	if t, ok := e.(gcs.After); ok {
		self.After(t.D, t.Ev)
		return
	}
	r, ok := e.(gcs.Reply)
	if !ok {
		g.work.Add(e)
		return
	}
	g.mu.Lock()
	w := g.waiting[r.ID]
	delete(g.waiting, r.ID)
	g.mu.Unlock()
	if w != nil {
		w.done(r)
	}
}

// serve makes the calls, one after the other.
func (g *GCS) serve() {
	<-g.up
	for {
		select {
		case <-g.work.Ready():
		case <-g.ctx.Done():
			return
		}
		for _, e := range g.work.Take() {
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
	g.waiting[req.ID] = &waiter{req, done}
	g.mu.Unlock()
	if err := g.ref.Post(req); err != nil {
		g.mu.Lock()
		delete(g.waiting, req.ID)
		g.mu.Unlock()
		done(gcs.Reply{ID: req.ID, Err: err})
	}
}

// Announce has the node in the table of nodes, once its home is known, and with every sends heartbeats.
func (g *GCS) Announce(r gcs.NodeRecord, every time.Duration) {
	a := gcs.Announce{Record: r, Every: every}
	g.mu.Lock()
	g.self = &a
	g.mu.Unlock()
	g.ref.Deliver(a)
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

// close stops what the component started and answers what is left.
func (g *GCS) close() {
	g.stop() // and with it the watches
	g.wg.Wait()
	if g.service != nil {
		_ = g.service.Stop() // its connection goes next
	}
	g.leave()
	if g.tables != nil {
		g.tables.Close()
	}
	if g.nc != nil {
		g.nc.Close()
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

// leave takes the node out of the table that others read: it does not live any more, and nobody is to wait for its heartbeat.
func (g *GCS) leave() {
	g.mu.Lock()
	self := g.self
	g.mu.Unlock()
	if self == nil || len(g.cfg.Servers) == 0 || g.tables == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), goodbyeTime)
	defer cancel()
	_ = g.tables.Do(ctx, gcs.Delete{Bucket: gcs.Nodes, Key: self.Record.Key(), Revision: -1}) // else its heartbeat is missed
}
