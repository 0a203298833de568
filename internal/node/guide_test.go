package node

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"

	"mobula/internal/testkit"
	"mobula/telemetry"
	"mobula/telemetry/collector"
	"mobula/wire"
)

const guidePath = "../../docs/guide/observability.md"

func guide(t *testing.T) string {
	t.Helper()
	b, err := os.ReadFile(guidePath)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// block is the guide's first code block of a language that has a text in it.
func block(t *testing.T, text, language, has string) string {
	t.Helper()
	for _, after := range strings.Split(text, "```"+language+"\n")[1:] {
		if body, _, closed := strings.Cut(after, "```"); closed && strings.Contains(body, has) {
			return body
		}
	}
	t.Fatalf("the guide has no block of %s with %q", language, has)
	return ""
}

// A collector that is configured as the guide says, and a node with the environment that it says: all three signals
// arrive in the file.
func TestTheGuidesCollector(t *testing.T) {
	text := guide(t)
	cfg, shell := block(t, text, "yaml", "receivers"), block(t, text, "sh", "OTEL_EXPORTER_OTLP_ENDPOINT")
	file := filepath.Join(t.TempDir(), "mobula.jsonl")
	const receiver = "127.0.0.1:4318"
	endpoint := regexp.MustCompile(`OTEL_EXPORTER_OTLP_ENDPOINT=http://(\S+)`).FindStringSubmatch(shell)
	if len(endpoint) != 2 || endpoint[1] != receiver || !strings.Contains(cfg, "endpoint: "+receiver) {
		t.Fatalf("the node sends to %v, which the collector has not", endpoint)
	}
	for old, now := range map[string]string{receiver: "127.0.0.1:0", "127.0.0.1:4317": "127.0.0.1:0", "path: mobula.jsonl": "path: " + file} { // what a test may use
		if !strings.Contains(cfg, old) {
			t.Fatalf("the configuration has no %q", old)
		}
		cfg = strings.ReplaceAll(cfg, old, now)
	}
	coll, err := collector.Run([]byte(cfg))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(coll.Close)
	for line := range strings.Lines(shell) {
		if v, ok := strings.CutPrefix(strings.TrimSpace(line), "export "); ok {
			name, value, _ := strings.Cut(v, "=")
			t.Setenv(name, strings.ReplaceAll(value, "http://"+receiver, coll.Endpoint()))
		}
	}
	t.Setenv("OTEL_BSP_SCHEDULE_DELAY", "20")
	n, c := running(t, Config{}, Telemetry{})
	spec := &wire.TaskSpec{ID: c.Root().NextTask(), Parent: c.Root().Task, Opts: quick}
	spec.Trace = telemetry.NewSampler(1).Decide(wire.TraceContext{}, spec.ID)
	hs, err := c.Submit(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Get(t.Context(), hs[0]); err != nil {
		t.Fatal(err)
	}
	ctx := testkit.Within(t)
	n.cfg.Logger.Error("a record")
	if err := n.obs.Flush(ctx); err != nil {
		t.Fatal(err)
	}
	if _, err := coll.Wait(ctx, func(s []*tracepb.Span) bool { return len(s) > 0 }); err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]bool{}
	for text := range bytes.Lines(raw) {
		var line map[string]json.RawMessage
		if err := json.Unmarshal(text, &line); err != nil {
			t.Fatalf("%.300q: %v", text, err)
		}
		for k, v := range line {
			got[k] = true
			if !strings.Contains(string(v), "deployment.environment.name") {
				t.Errorf("%s without the resource's attributes: %.300s", k, v)
			}
		}
	}
	for _, k := range []string{"resourceSpans", "resourceMetrics", "resourceLogs"} {
		if !got[k] {
			t.Errorf("no %s among %v in the file", k, got)
		}
	}
}

// A configuration with what nobody has is an error.
func TestACollectorRefusesWhatItDoesNotHave(t *testing.T) {
	cfg := strings.NewReplacer("127.0.0.1:4318", "127.0.0.1:0", "127.0.0.1:4317", "127.0.0.1:0", "path: mobula.jsonl", "path: "+filepath.Join(t.TempDir(), "f")).Replace(block(t, guide(t), "yaml", "receivers"))
	for _, c := range [][2]string{
		{"  debug:\n", "  debug:\n  kafka:\n"},
		{"  batch:\n", "  batch:\n  tail_sampling:\n"},
		{"exporters: [file, debug]", "exporters: [file, zipkin]"},
		{"receivers: [otlp]", "receivers: [jaeger]"},
		{"processors: [memory_limiter, batch]", "processors: [filter]"},
		{"  otlp:\n    protocols:", "  jaeger:\n    protocols:"},
		{"    traces:\n", "    profiles:\n"},
	} {
		bad := strings.Replace(cfg, c[0], c[1], 1)
		if bad == cfg {
			t.Fatalf("the configuration has no %q", c[0])
		}
		if coll, err := collector.Run([]byte(bad)); err == nil {
			coll.Close()
			t.Errorf("with %q it runs", c[1])
		}
	}
}
