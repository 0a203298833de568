package export

import (
	"errors"
	"strings"
	"testing"

	"mobula/internal/errs"
)

func TestWhatTheEnvironmentAsksFor(t *testing.T) {
	for _, c := range []struct {
		env   string
		want  Protocol
		wrong string
	}{
		{"", "", ""},
		{"OTEL_SERVICE_NAME=x OTEL_TRACES_SAMPLER=always_on", "", ""},
		{"OTEL_EXPORTER_OTLP_ENDPOINT=http://h", HTTP, ""},
		{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=http://h", HTTP, ""},
		{"OTEL_TRACES_EXPORTER=otlp", HTTP, ""},
		{"OTEL_TRACES_EXPORTER=OTLP OTEL_EXPORTER_OTLP_PROTOCOL=grpc", GRPC, ""},
		{"OTEL_TRACES_EXPORTER=otlp OTEL_EXPORTER_OTLP_PROTOCOL=grpc OTEL_EXPORTER_OTLP_TRACES_PROTOCOL=http/protobuf", HTTP, ""},
		{"OTEL_TRACES_EXPORTER=none OTEL_EXPORTER_OTLP_ENDPOINT=http://h", "", ""},
		{"OTEL_SDK_DISABLED=true OTEL_EXPORTER_OTLP_ENDPOINT=http://h", "", ""},
		{"OTEL_TRACES_EXPORTER=zipkin", "", `"zipkin"`},
		{"OTEL_TRACES_EXPORTER=otlp OTEL_EXPORTER_OTLP_PROTOCOL=http/json", "", `"http/json"`},
	} {
		env := map[string]string{}
		for kv := range strings.FieldsSeq(c.env) {
			k, v, _ := strings.Cut(kv, "=")
			env[k] = v
		}
		got, err := fromEnv(func(k string) string { return env[k] }, Traces)
		if got != c.want || (c.wrong != "") != errors.Is(err, errs.ErrInvalid) || err != nil && !strings.Contains(err.Error(), c.wrong) {
			t.Errorf("%s: %q, %v; want %q", c.env, got, err, c.want)
		}
	}
}

func TestWithoutAnExporterThereIsNothing(t *testing.T) {
	e, err := New(t.Context(), Config{Getenv: func(string) string { return "" }})
	if e != nil || err != nil {
		t.Errorf("got %v, %v", e, err)
	}
}

func TestEachSignalHasItsVariables(t *testing.T) {
	for _, c := range []struct {
		env  map[string]string
		of   Signal
		want Protocol
		bad  bool
	}{
		{nil, Metrics, "", false},
		{map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://x"}, Metrics, HTTP, false},
		{map[string]string{"OTEL_EXPORTER_OTLP_LOGS_ENDPOINT": "http://x"}, Logs, HTTP, false},
		{map[string]string{"OTEL_EXPORTER_OTLP_LOGS_ENDPOINT": "http://x"}, Metrics, "", false},
		{map[string]string{"OTEL_METRICS_EXPORTER": "otlp", "OTEL_EXPORTER_OTLP_METRICS_PROTOCOL": "grpc"}, Metrics, GRPC, false},
		{map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://x", "OTEL_LOGS_EXPORTER": "none"}, Logs, "", false},
		{map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://x", "OTEL_SDK_DISABLED": "true"}, Logs, "", false},
		{map[string]string{"OTEL_METRICS_EXPORTER": "prometheus"}, Metrics, "", true},
		{map[string]string{"OTEL_LOGS_EXPORTER": "otlp", "OTEL_EXPORTER_OTLP_PROTOCOL": "http/json"}, Logs, "", true},
	} {
		got, err := fromEnv(func(k string) string { return c.env[k] }, c.of)
		if got != c.want || (err != nil) != c.bad || err != nil && !strings.Contains(err.Error(), c.of.What) {
			t.Errorf("%s of %v: %q, %v", c.of.Name, c.env, got, err)
		}
	}
}

// A program that has not linked the driver is told what to import, for each signal; one that asks for nothing needs none.
func TestTheMissingDriverIsNamed(t *testing.T) {
	asked := Config{Getenv: func(name string) string { return map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://h"}[name] }}
	for what, open := range map[string]func() (any, error){
		"spans":       func() (any, error) { return New(t.Context(), asked) },
		"metrics":     func() (any, error) { return NewMetrics(t.Context(), asked, nil) },
		"log records": func() (any, error) { return NewLogs(t.Context(), asked) },
	} {
		_, err := open()
		if !errors.Is(err, errs.ErrInvalid) || !strings.Contains(err.Error(), `import _ "mobula/telemetry/otlp"`) || !strings.Contains(err.Error(), what) {
			t.Errorf("%s: %v", what, err)
		}
	}
}
