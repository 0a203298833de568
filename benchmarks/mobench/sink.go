package main

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"sync/atomic"
	"time"

	"mobula/telemetry"
	_ "mobula/telemetry/otlp" // what it takes comes from there
)

// sink takes spans over OTLP/HTTP and counts their bytes: an exporter with nowhere to send would cost less
// than one at work.
type sink struct {
	server http.Server
	url    string
	bytes  atomic.Int64
	done   chan struct{}
}

// startSink starts one on the host's address.
func startSink(host string) (*sink, error) {
	l, err := net.Listen("tcp", net.JoinHostPort(host, "0"))
	if err != nil {
		return nil, fmt.Errorf("sink of spans: %w", err)
	}
	s := &sink{url: "http://" + l.Addr().String(), done: make(chan struct{})}
	s.server.ReadHeaderTimeout = time.Minute
	s.server.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n, _ := io.Copy(io.Discard, r.Body) // what was cut short is counted as far as it came
		s.bytes.Add(n)
		w.Header().Set("Content-Type", "application/x-protobuf") // an empty ExportTraceServiceResponse
	})
	go func() {
		defer close(s.done)
		_ = s.server.Serve(l) // ends with Close
	}()
	return s, nil
}

func (s *sink) close() error {
	err := s.server.Close()
	<-s.done
	return err
}

// tracing are the variables that trace a share of the tasks into the sink, as far as getenv does not say otherwise.
func (s *sink) tracing(getenv func(string) string) []string {
	var env []string
	if getenv("OTEL_TRACES_SAMPLER") == "" {
		env = append(env, "OTEL_TRACES_SAMPLER=parentbased_traceidratio", "OTEL_TRACES_SAMPLER_ARG="+strconv.FormatFloat(telemetry.DefaultRatio, 'g', -1, 64))
	}
	if getenv("OTEL_TRACES_EXPORTER") == "" && getenv("OTEL_EXPORTER_OTLP_ENDPOINT") == "" && getenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT") == "" {
		env = append(env, "OTEL_TRACES_EXPORTER=otlp", "OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf", "OTEL_EXPORTER_OTLP_ENDPOINT="+s.url)
	}
	return env
}

// setenv puts variables into this process' environment, for the nodes and processes it starts.
func setenv(env []string) error {
	var all []error
	for _, e := range env {
		for i := range e {
			if e[i] == '=' {
				all = append(all, os.Setenv(e[:i], e[i+1:]))
				break
			}
		}
	}
	return errors.Join(all...)
}

// untraced are the variables that switch tracing off.
func untraced() []string {
	return []string{"OTEL_TRACES_SAMPLER=always_off", "OTEL_TRACES_EXPORTER=none"}
}
