package node

import (
	"context"
	"log/slog"
	"time"

	"mobula/internal/release"
	"mobula/internal/state"
	"mobula/telemetry/export"
)

// logFlushTime bounds what the end of a node waits for its collector to take the last log records.
const logFlushTime = 2 * time.Second

// exporting is who exports.
func (n *Node) exporting() export.Config {
	return export.Config{Node: n.cfg.Name, Version: release.Build(), Ratio: n.cfg.TraceRatio}
}

// startLogs has the node's log records exported too, where the OTEL_ variables say so.
func (n *Node) startLogs() {
	l, err := export.NewLogs(context.Background(), n.exporting())
	if err != nil {
		n.cfg.Logger.Warn("log records are not exported", "err", err)
	}
	if l != nil {
		n.obs.logs = l
		n.cfg.Logger = slog.New(l.Beside(n.cfg.Logger.Handler()))
	}
}

// closeLogs sends what is queued. It is the last thing that a node does.
func (n *Node) closeLogs() {
	if n.obs.logs == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), logFlushTime)
	defer cancel()
	if err := n.obs.logs.Shutdown(ctx); err != nil {
		n.cfg.Logger.Warn("the last log records could not be exported", "err", err)
	}
}

// startMetrics has the node's metrics exported, where the OTEL_ variables say so: those that its endpoint serves.
func (n *Node) startMetrics() {
	m, err := export.NewMetrics(n.life, n.exporting(), n.obs.set)
	if err != nil {
		n.cfg.Logger.Warn("metrics are not exported", "err", err)
	}
	if m == nil {
		return
	}
	n.obs.metrics = m
	n.obs.looks.Do(func() { n.work.Go(n.watchMailboxes) })
	n.work.Go(func() {
		<-n.life.Done()
		ctx, cancel := context.WithTimeout(context.Background(), spanFlushTime)
		defer cancel()
		if err := m.Shutdown(ctx); err != nil {
			n.cfg.Logger.Warn("the last metrics could not be exported", "err", err)
		}
	})
}

// exported is what was exported and given up.
func (o *observer) exported() (e state.Export) {
	if sp := o.spans.Load(); sp != nil {
		e.Spans, e.SpansDropped = sp.exp.Sent(), sp.dropped.Load()+sp.exp.Dropped()
	}
	if o.metrics != nil {
		e.Metrics, e.MetricsDropped = o.metrics.Sent(), o.metrics.Dropped()
	}
	if o.logs != nil {
		e.Logs, e.LogsDropped = o.logs.Sent(), o.logs.Dropped()
	}
	return e
}
