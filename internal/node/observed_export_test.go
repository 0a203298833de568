package node

import (
	"strings"
	"testing"

	"mobula/internal/state"
	"mobula/internal/testkit"
	"mobula/telemetry"
	"mobula/telemetry/collector"
	"mobula/wire"
)

// What the metrics' endpoint serves is exported too, by the same names, and the node's log records with it.
func TestMetricsAndLogRecordsAreExported(t *testing.T) {
	coll, err := collector.HTTP()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(coll.Close)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", coll.Endpoint())
	n, c := running(t, Config{}, Telemetry{})
	h := submit(t, c, quick)
	if _, err := c.Get(t.Context(), h); err != nil {
		t.Fatal(err)
	}
	ctx := testkit.Within(t)
	n.cfg.Logger.Error("something is wrong", "task", h.ID().Task.String())
	if err := n.obs.Flush(ctx); err != nil {
		t.Fatal(err)
	}
	logged := false
	for _, r := range coll.Logs() {
		logged = logged || r.Body.GetStringValue() == "something is wrong" && r.SeverityText == "ERROR" && strings.Contains(r.String(), h.ID().Task.String())
	}
	if !logged {
		t.Errorf("the record is not among %v", coll.Logs())
	}
	if err := n.obs.Flush(ctx); err != nil {
		t.Fatal(err)
	}
	fs, err := n.obs.Set().Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range fs {
		if coll.Metric(f.GetName()) == nil {
			t.Errorf("%s was not exported", f.GetName())
		}
	}
	if s := must[state.Status](t, c, state.MethodStatus, nil); s.Export.Metrics == 0 || s.Export.Logs == 0 || s.Export.MetricsDropped+s.Export.LogsDropped != 0 {
		t.Errorf("exported %+v", s.Export)
	}
}

// Where the collector is away work goes on, and what it did not get is counted.
func TestWorkGoesOnWithoutACollector(t *testing.T) {
	coll, err := collector.HTTP()
	if err != nil {
		t.Fatal(err)
	}
	coll.Close()
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", coll.Endpoint())
	for _, name := range []string{"OTEL_EXPORTER_OTLP_TIMEOUT", "OTEL_BSP_EXPORT_TIMEOUT", "OTEL_BLRP_EXPORT_TIMEOUT", "OTEL_METRIC_EXPORT_TIMEOUT"} {
		t.Setenv(name, "50")
	}
	for _, name := range []string{"OTEL_BSP_SCHEDULE_DELAY", "OTEL_BLRP_SCHEDULE_DELAY", "OTEL_METRIC_EXPORT_INTERVAL"} {
		t.Setenv(name, "20")
	}
	n, c := running(t, Config{CPUs: 2}, Telemetry{})
	const tasks = 300
	for i := range tasks {
		spec := &wire.TaskSpec{ID: c.Root().NextTask(), Parent: c.Root().Task, Opts: quick}
		spec.Trace = telemetry.NewSampler(1).Decide(wire.TraceContext{}, spec.ID)
		hs, err := c.Submit(t.Context(), spec)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Get(t.Context(), hs[0]); err != nil {
			t.Fatalf("task %d: %v", i, err)
		}
		n.cfg.Logger.Debug("a task has ended") // below the level
	}
	n.cfg.Logger.Warn("nobody takes this")
	s := until(t, c, state.MethodStatus, nil, func(s state.Status) bool {
		e := s.Export
		return s.Tasks["FINISHED"] == tasks && e.SpansDropped >= tasks && e.MetricsDropped > 0 && e.LogsDropped == 1
	})
	if s.Export.Spans+s.Export.Metrics+s.Export.Logs != 0 {
		t.Errorf("exported %+v", s.Export)
	}
	if text := string(must[state.Text](t, c, state.MethodMetrics, nil).Body); !strings.Contains(text, "mobula_log_records_dropped_total 1") {
		t.Error("the metrics do not show the dropped record")
	}
}
