package node

import (
	"context"
	"path/filepath"

	"mobula/internal/ids"
	"mobula/internal/node/observe"
	"mobula/internal/state"
	"mobula/telemetry/metrics"
)

// Telemetry says what a node records of itself, and shows.
type Telemetry = observe.Telemetry

func (n *Node) newObserver() *observe.Observer {
	cfg := observe.Config{
		Name: n.cfg.Name, Home: n.dir, Ratio: n.cfg.TraceRatio, Clock: n.clock, Log: n.cfg.Logger, Life: n.life, Go: n.work.Go,
		Warn:     func(msg string, args ...any) { n.limited.warn(msg, args...) },
		Snapshot: func(ctx context.Context) metrics.Snapshot { return n.inspect.Snapshot(ctx) },
		Tree:     func() []state.Component { return n.inspect.Tree() },
	}
	cfg.Known = func(id ids.ClientID) bool { return n.sessions.get(id) != nil }
	if n.cfg.Keep {
		cfg.Dir = filepath.Join(n.dir, "events")
	}
	return observe.New(cfg)
}

// StartTelemetry sets the bounds of what the node records and begins to serve metrics. Without it the
// node records with the defaults and serves nothing. Only the first call counts.
func (n *Node) StartTelemetry(t Telemetry) error { return n.obs.Configure(t) }

// MetricsToken is the file of the token that the metrics are served for, where they are.
func (n *Node) MetricsToken() string { return filepath.Join(n.dir, observe.TokenName) }

// MetricsURL is where metrics are served, empty if they are not.
func (n *Node) MetricsURL() string { return n.obs.MetricsURL() }
