package node

import (
	"context"
	"errors"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"mobula/actors"
	"mobula/internal/ids"
	"mobula/raylet/owner"
	"mobula/raylet/pool"
	"mobula/telemetry/events"
	"mobula/telemetry/export"
	"mobula/telemetry/metrics"
	"mobula/telemetry/rotate"
	"mobula/wire"
)

// Telemetry says what a node records of itself, and shows.
type Telemetry struct {
	Ring      int    // task events remembered; 0: 100,000; negative: none
	Rate      int    // task events a second that are recorded completely; default 20,000
	FileBytes int64  // of a file of task events, of a kept node; 0: no files
	Files     int    // full files that are kept beside it
	Metrics   string // loopback address to serve metrics on; empty: none
}

// observer is what the node knows about itself and nobody's state depends on.
type observer struct {
	once  sync.Once // of what follows, up to set
	rec   *events.Recorder
	set   *metrics.Set
	looks sync.Once // of the start of watchMailboxes

	configured sync.Once
	err        error                       // of the configuration; written in configured
	file       atomic.Pointer[events.File] // nil: there are none
	server     atomic.Pointer[metrics.Server]
	spans      atomic.Pointer[spanner] // nil: no exporter is configured
	metrics    *export.Metrics         // nil: no exporter is configured; written in once
	logs       *export.Logs            // likewise; written before the tree is
	stop       atomic.Pointer[chan struct{}]

	mu       sync.Mutex
	stats    map[ids.ClientID]report // guarded by mu: what workers last said
	panicked map[string]actors.Event // guarded by mu: components that wait for their restart
	cold     chan struct{}           // tokens of cold requests that run at once
	asked    map[ids.ClientID]int    // guarded by mu: cold requests of each client
}

// report is what a worker last said of itself.
type report struct {
	wire.Stats
	at int64
}

// StartTelemetry sets the bounds of what the node records and begins to serve metrics. Without it the
// node records with the defaults and serves nothing. Only the first call counts.
func (n *Node) StartTelemetry(t Telemetry) error {
	o := n.observer()
	o.configured.Do(func() { o.err = n.configure(t) })
	return o.err
}

// observer is the node's, begun by whoever asks first: an owner, a client or StartTelemetry.
func (n *Node) observer() *observer {
	o := &n.obs
	o.once.Do(func() {
		o.cold = make(chan struct{}, maxColdRunning)
		o.set = metrics.New(n.inspect.Snapshot)
		o.rec = events.New(events.Config{})
		exp, err := export.New(n.life, n.exporting())
		if err != nil {
			n.cfg.Logger.Warn("traces are not exported", "err", err)
		}
		if exp != nil {
			n.startSpanner(exp)
		}
		n.startMetrics()
	})
	return o
}

func (n *Node) configure(t Telemetry) error {
	o := &n.obs
	o.rec.Configure(events.Config{Ring: t.Ring, Rate: t.Rate})
	if n.cfg.Keep && t.Ring >= 0 && t.FileBytes > 0 {
		n.startEventFiles(t)
	}
	if t.Metrics == "" {
		return nil
	}
	s, err := metrics.Serve(t.Metrics, o.set)
	if err != nil {
		return err
	}
	o.server.Store(s)
	o.looks.Do(func() { n.work.Go(n.watchMailboxes) })
	n.work.Go(func() {
		<-n.life.Done()
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		if err := s.Close(ctx); err != nil && !errors.Is(err, context.DeadlineExceeded) {
			n.cfg.Logger.Warn("the metrics endpoint did not close", "err", err)
		}
	})
	return nil
}

func (n *Node) startEventFiles(t Telemetry) {
	w := rotate.New(filepath.Join(n.dir, "events", "tasks.jsonl"), t.FileBytes, t.Files)
	f := events.NewFile(n.obs.rec, w, func(err error) {
		n.limited.warn("task events cannot be written to their file; they are counted as unfiled", "err", err)
	})
	n.obs.file.Store(f)
	n.work.Go(func() {
		f.Run(n.life)
		if err := w.Close(); err != nil {
			n.cfg.Logger.Warn("the file of task events", "err", err)
		}
	})
}

// watchMailboxes looks at them every second where metrics are served or exported.
func (n *Node) watchMailboxes() {
	t := time.NewTicker(time.Second)
	defer t.Stop()
	for {
		select {
		case <-t.C:
			n.obs.set.Mailboxes.Observe(n.clock.Now(), n.inspect.Tree())
		case <-n.life.Done():
			return
		}
	}
}

// watching tells owners whether to report changes.
func (n *Node) watching() bool {
	o := n.observer()
	return o.rec.Recording() || o.spans.Load() != nil
}

// observe takes an owner's changes, on its goroutine: it must be quick.
func (n *Node) observe(changes []owner.Transition) {
	o := &n.obs
	o.rec.Record(changes)
	o.set.Actors.Record(changes)
	sp := o.spans.Load()
	if sp == nil {
		return
	}
	for i := range changes {
		if changes[i].Spec.Trace.Sampled() {
			sp.task(&changes[i])
		}
	}
}

// component hears of what happens to components. It runs anywhere and must not block.
func (o *observer) component(ev actors.Event) {
	sp := o.spans.Load()
	if sp == nil {
		return
	}
	o.mu.Lock()
	begin, waits := o.panicked[ev.Path]
	switch ev.Kind {
	case actors.EventPanicked:
		if !waits {
			if o.panicked == nil {
				o.panicked = make(map[string]actors.Event)
			}
			o.panicked[ev.Path] = ev
		}
	case actors.EventRestarted, actors.EventStopped, actors.EventFailed:
		delete(o.panicked, ev.Path)
	}
	o.mu.Unlock()
	if waits && ev.Kind != actors.EventPanicked && ev.Kind != actors.EventEscalated && ev.Kind != actors.EventPoisoned {
		sp.restart(begin, ev)
	}
}

// workerStats notes what a worker says of itself.
func (n *Node) workerStats(s *session, m *wire.Stats) {
	if m.Worn {
		_ = n.raylet.Post(pool.Worn{Client: s.id}) // stopped: the node ends
	}
	o := &n.obs
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.stats == nil {
		o.stats = make(map[ids.ClientID]report)
	}
	if len(o.stats) > 64 {
		for id := range o.stats {
			if n.clients.get(id) == nil {
				delete(o.stats, id)
			}
		}
	}
	o.stats[s.id] = report{Stats: *m, at: n.clock.Now()}
}

// StopRequested is closed when a tool asks the node to stop. A node that nobody calls it of,
// one inside a program, refuses to be stopped from elsewhere.
func (n *Node) StopRequested() <-chan struct{} {
	c := make(chan struct{})
	if n.obs.stop.CompareAndSwap(nil, &c) {
		return c
	}
	return *n.obs.stop.Load()
}

// MetricsURL is where metrics are served, empty if they are not.
func (n *Node) MetricsURL() string {
	if s := n.obs.server.Load(); s != nil {
		return s.URL()
	}
	return ""
}
