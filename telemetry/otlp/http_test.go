package otlp

import (
	"encoding/pem"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"mobula/internal/errs"
	"mobula/internal/testkit"
	"mobula/telemetry"
	"mobula/telemetry/collector"
	"mobula/telemetry/export"
)

// After Shutdown no connection is left, though the collector is still there.
func TestShutdownLeavesNoConnection(t *testing.T) {
	for name, open := range map[string]func() (*collector.Collector, error){"grpc": collector.GRPC, "http/protobuf": collector.HTTP} {
		t.Run(name, func(t *testing.T) {
			c, err := open()
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", c.Endpoint())
			t.Setenv("OTEL_EXPORTER_OTLP_PROTOCOL", name)
			before := goleak.IgnoreCurrent()
			e, err := export.New(t.Context(), export.Config{})
			if err != nil {
				t.Fatal(err)
			}
			e.Emit(&telemetry.Span{TraceID: [16]byte{1}, ID: [8]byte{1}, Name: "s", Start: 1, End: 2})
			ctx := testkit.Within(t)
			if err := e.Flush(ctx); err != nil {
				t.Fatal(err)
			}
			if spans, _ := c.Spans(); len(spans) != 1 {
				t.Fatalf("%d spans came", len(spans))
			}
			if err := e.Shutdown(ctx); err != nil {
				t.Fatal(err)
			}
			server := []goleak.Option{before, goleak.IgnoreAnyFunction("net/http.(*conn).serve"), goleak.IgnoreAnyFunction("net/http.(*connReader).backgroundRead"),
				goleak.IgnoreAnyFunction("google.golang.org/grpc.(*Server).serveStreams"), goleak.IgnoreAnyFunction("google.golang.org/grpc/internal/transport.NewServerTransport")}
			if err := goleak.Find(server...); err != nil {
				t.Error(err)
			}
		})
	}
}

// The variables for certificates and the time count, as they would for the SDK's own client.
func TestExportOverTLS(t *testing.T) {
	var got http.Header
	s := httptest.NewTLSServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got = r.Header }))
	defer s.Close()
	ca := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", s.URL)
	t.Setenv("OTEL_EXPORTER_OTLP_CERTIFICATE", ca)
	t.Setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-key=secret")
	e, err := export.New(t.Context(), export.Config{})
	if err != nil {
		t.Fatal(err)
	}
	e.Emit(&telemetry.Span{TraceID: [16]byte{1}, ID: [8]byte{1}, Name: "s", Start: 1, End: 2})
	ctx := testkit.Within(t)
	if err := errors.Join(e.Flush(ctx), e.Shutdown(ctx)); err != nil {
		t.Fatal(err)
	}
	if got.Get("x-key") != "secret" {
		t.Errorf("headers %v", got)
	}
}

func TestVariablesOfTheHTTPClient(t *testing.T) {
	empty := filepath.Join(t.TempDir(), "empty.pem")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		env   string
		want  time.Duration
		wrong string
	}{
		{"", 10 * time.Second, ""},
		{"OTEL_EXPORTER_OTLP_TIMEOUT=500", 500 * time.Millisecond, ""},
		{"OTEL_EXPORTER_OTLP_TIMEOUT=500 OTEL_EXPORTER_OTLP_TRACES_TIMEOUT=20", 20 * time.Millisecond, ""},
		{"OTEL_EXPORTER_OTLP_TIMEOUT=5s", 0, `"5s"`},
		{"OTEL_EXPORTER_OTLP_CERTIFICATE=/no/such", 0, "/no/such"},
		{"OTEL_EXPORTER_OTLP_CERTIFICATE=" + empty, 0, "no certificate"},
		{"OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE=/no/cert OTEL_EXPORTER_OTLP_CLIENT_KEY=/no/key", 0, "/no/cert"},
	} {
		env := map[string]string{}
		for kv := range strings.FieldsSeq(c.env) {
			k, v, _ := strings.Cut(kv, "=")
			env[k] = v
		}
		got, err := httpClient(func(k string) string { return env[k] }, export.Traces)
		switch {
		case c.wrong != "":
			if !errors.Is(err, errs.ErrInvalid) || !strings.Contains(err.Error(), c.wrong) {
				t.Errorf("%s: %v", c.env, err)
			}
		case err != nil || got.Timeout != c.want:
			t.Errorf("%s: %+v, %v", c.env, got, err)
		}
	}
}
