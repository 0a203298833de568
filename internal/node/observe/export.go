package observe

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"mobula/internal/release"
	"mobula/internal/state"
	"mobula/telemetry/export"
)

// logFlushTime bounds what the end of a node waits for its collector to take the last log records.
const logFlushTime = 2 * time.Second

// exporting is who exports.
func (o *Observer) exporting() export.Config {
	return export.Config{Node: o.cfg.Name, Version: release.Build(), Ratio: o.cfg.Ratio}
}

// startLogs has the node's log records exported too, where the OTEL_ variables say so.
func (o *Observer) startLogs() {
	l, err := export.NewLogs(context.Background(), o.exporting())
	if err != nil {
		o.log.Warn("log records are not exported", "err", err)
	}
	if l != nil {
		o.logs = l
		o.log = slog.New(l.Beside(o.log.Handler()))
	}
}

// Close sends what is queued. It is the last thing that a node does.
func (o *Observer) Close() {
	if o.logs == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), logFlushTime)
	defer cancel()
	if err := o.logs.Shutdown(ctx); err != nil {
		o.log.Warn("the last log records could not be exported", "err", err)
	}
}

// startMetrics has the node's metrics exported, where the OTEL_ variables say so: those that its endpoint serves.
func (o *Observer) startMetrics() {
	m, err := export.NewMetrics(o.cfg.Life, o.exporting(), o.set)
	if err != nil {
		o.log.Warn("metrics are not exported", "err", err)
	}
	if m == nil {
		return
	}
	o.metrics = m
	o.looks.Do(func() { o.cfg.Go(o.watchMailboxes) })
	o.cfg.Go(func() {
		<-o.cfg.Life.Done()
		ctx, cancel := context.WithTimeout(context.Background(), spanFlushTime)
		defer cancel()
		if err := m.Shutdown(ctx); err != nil {
			o.log.Warn("the last metrics could not be exported", "err", err)
		}
	})
}

// Flush sends the log records and metrics that wait, whatever of them is exported.
func (o *Observer) Flush(ctx context.Context) error {
	o.begin()
	var all []error
	if o.logs != nil {
		all = append(all, o.logs.Flush(ctx))
	}
	if o.metrics != nil {
		all = append(all, o.metrics.Flush(ctx))
	}
	return errors.Join(all...)
}

// exported is what was exported and given up.
func (o *Observer) exported() (e state.Export) {
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
