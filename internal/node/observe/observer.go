package observe

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"mobula/actors"
	"mobula/internal/ids"
	"mobula/internal/state"
	"mobula/internal/steady"
	"mobula/raylet/owner"
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

// Config says whose observer it is, and where it runs.
type Config struct {
	Name  string
	Dir   string  // of files of task events; empty: none are kept
	Home  string  // the node's directory, where the token is that metrics are served for
	Ratio float64 // share of tasks without a traced caller that are traced
	Clock steady.Clock
	Log   *slog.Logger
	Life  context.Context // of the node: all that runs in the background ends with it, and sends what is left
	Go    func(func())    // runs something that ends with Life, and is waited for
	Warn  func(msg string, args ...any)

	Snapshot func(context.Context) metrics.Snapshot
	Tree     func() []state.Component
	Known    func(ids.ClientID) bool // the client is connected
}

// Observer is what a node records of itself and shows. Its methods may be called from several goroutines, and do not block but for Configure and Close.
type Observer struct {
	cfg Config
	log *slog.Logger

	once  sync.Once // of what follows, up to set
	rec   *events.Recorder
	set   *metrics.Set
	looks sync.Once // of the start of watchMailboxes

	configured sync.Once
	err        error                       // of the configuration; written in configured
	file       atomic.Pointer[events.File] // nil: there are none
	server     atomic.Pointer[metrics.Server]
	spans      atomic.Pointer[spanner] // nil: no exporter is configured
	metrics    export.Exporter         // nil: no exporter is configured; written in once
	logs       export.LogExporter      // likewise; immutable

	mu       sync.Mutex
	stats    map[ids.ClientID]wire.Stats // guarded by mu: what workers last said
	panicked map[string]actors.Event     // guarded by mu: components that wait for their restart
}

// New makes a node's observer. Log gives the node's logger from then on.
func New(cfg Config) *Observer {
	o := &Observer{cfg: cfg, log: cfg.Log}
	o.startLogs()
	return o
}

// Log is the node's logger: its records are exported too, where the OTEL_ variables say so.
func (o *Observer) Log() *slog.Logger { return o.log }

// Rename has the node be called otherwise, before it has begun. Only its log records keep the name that it had.
func (o *Observer) Rename(name string) { o.cfg.Name = name }

// Configure sets the bounds of what the node records and begins to serve metrics. Without it the
// node records with the defaults and serves nothing. Only the first call counts.
func (o *Observer) Configure(t Telemetry) error {
	o.begin()
	o.configured.Do(func() { o.err = o.configure(t) })
	return o.err
}

// begin begins to record, for whoever asks first: an owner, a client or Configure.
func (o *Observer) begin() {
	o.once.Do(func() {
		o.set = metrics.New(o.cfg.Snapshot)
		o.rec = events.New(events.Config{})
		exp, err := export.New(o.cfg.Life, o.exporting())
		if err != nil {
			o.log.Warn("traces are not exported", "err", err)
		}
		if exp != nil {
			o.startSpanner(exp)
		}
		o.startMetrics()
	})
}

// Recorder is the record of task events.
func (o *Observer) Recorder() *events.Recorder {
	o.begin()
	return o.rec
}

// Set is the node's metrics.
func (o *Observer) Set() *metrics.Set {
	o.begin()
	return o.set
}

// Outline fills in what was recorded, exported and left out.
func (o *Observer) Outline(out *metrics.Snapshot) {
	o.begin()
	st := o.rec.Stats()
	out.Events = state.Events{Recorded: st.Recorded, Kept: st.Kept, Dropped: st.Dropped}
	for s, k := range st.States {
		out.Changes[s.String()] = k
	}
	if f := o.file.Load(); f != nil {
		out.Events.Unfiled = f.Unfiled()
	}
	out.Export = o.exported()
}

func (o *Observer) configure(t Telemetry) error {
	o.rec.Configure(events.Config{Ring: t.Ring, Rate: t.Rate})
	if o.cfg.Dir != "" && t.Ring >= 0 && t.FileBytes > 0 {
		o.startEventFiles(t)
	}
	if t.Metrics == "" {
		return nil
	}
	token, err := metricsToken(o.cfg.Home)
	if err != nil {
		return err
	}
	s, err := metrics.Serve(t.Metrics, token, o.set)
	if err != nil {
		return err
	}
	o.server.Store(s)
	o.looks.Do(func() { o.cfg.Go(o.watchMailboxes) })
	o.cfg.Go(func() {
		<-o.cfg.Life.Done()
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		if err := s.Close(ctx); err != nil && !errors.Is(err, context.DeadlineExceeded) {
			o.log.Warn("the metrics endpoint did not close", "err", err)
		}
	})
	return nil
}

func (o *Observer) startEventFiles(t Telemetry) {
	w := rotate.New(filepath.Join(o.cfg.Dir, "tasks.jsonl"), t.FileBytes, t.Files)
	f := events.NewFile(o.rec, w, func(err error) {
		o.cfg.Warn("task events cannot be written to their file; they are counted as unfiled", "err", err)
	})
	o.file.Store(f)
	o.cfg.Go(func() {
		f.Run(o.cfg.Life)
		if err := w.Close(); err != nil {
			o.log.Warn("the file of task events", "err", err)
		}
	})
}

// watchMailboxes looks at them every second where metrics are served or exported.
func (o *Observer) watchMailboxes() {
	t := time.NewTicker(time.Second)
	defer t.Stop()
	for {
		select {
		case <-t.C:
			o.set.Mailboxes.Observe(o.cfg.Clock.Now(), o.cfg.Tree())
		case <-o.cfg.Life.Done():
			return
		}
	}
}

// Watching tells owners whether to report changes.
func (o *Observer) Watching() bool {
	o.begin()
	return o.rec.Recording() || o.spans.Load() != nil
}

// Record takes an owner's changes, on its goroutine: it must be quick.
func (o *Observer) Record(changes []owner.Transition) {
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

// Component hears of what happens to components. It runs anywhere and must not block.
func (o *Observer) Component(ev actors.Event) {
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

// Note notes what a worker says of itself.
func (o *Observer) Note(id ids.ClientID, m *wire.Stats) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.stats == nil {
		o.stats = make(map[ids.ClientID]wire.Stats)
	}
	if len(o.stats) > 64 {
		for id := range o.stats {
			if !o.cfg.Known(id) {
				delete(o.stats, id)
			}
		}
	}
	o.stats[id] = *m
}

// Report is what a worker last said.
func (o *Observer) Report(id ids.ClientID) (said wire.Stats, ok bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	said, ok = o.stats[id]
	return said, ok
}

// MetricsURL is where metrics are served, empty if they are not.
func (o *Observer) MetricsURL() string {
	if s := o.server.Load(); s != nil {
		return s.URL()
	}
	return ""
}
