package metrics

import (
	"bytes"
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/prometheus/common/expfmt"

	"mobula/internal/errs"
)

// Server serves /metrics.
type Server struct {
	l    net.Listener
	s    *http.Server
	done chan struct{}
}

// Serve begins to serve the metrics at a loopback address, to whoever shows the token; port 0 takes a free one. Every user of the machine reaches the address.
func Serve(addr, token string, m *Set) (*Server, error) {
	ap, err := netip.ParseAddrPort(addr)
	if err != nil || !ap.Addr().IsLoopback() {
		return nil, errs.New(errs.CodeInvalid, "metrics address %q: want a loopback address and a port, as 127.0.0.1:9464; there is no encryption", addr)
	}
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("metrics: %w; give another address (metrics.address, --metrics-address, MOBULA_METRICS_ADDRESS), or port 0 for a free one", err)
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(m.Registry, promhttp.HandlerOpts{MaxRequestsInFlight: 4, Timeout: 10 * time.Second}))
	s := &Server{l: l, done: make(chan struct{}), s: &http.Server{Handler: withToken(token, mux), ReadHeaderTimeout: 5 * time.Second, IdleTimeout: time.Minute}}
	go func() {
		defer close(s.done)
		_ = s.s.Serve(l) // ends with Close
	}()
	return s, nil
}

// withToken refuses whoever does not show the token, whatever is asked for.
func withToken(token string, h http.Handler) http.Handler {
	want := []byte("Bearer " + token)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if subtle.ConstantTimeCompare([]byte(r.Header.Get("Authorization")), want) != 1 {
			w.Header().Set("WWW-Authenticate", "Bearer")
			http.Error(w, "the bearer token is needed that the file metrics.token of the node's directory has", http.StatusUnauthorized)
			return
		}
		h.ServeHTTP(w, r)
	})
}

// URL is where the metrics are.
func (s *Server) URL() string { return "http://" + s.l.Addr().String() + "/metrics" }

// Close stops the server when scrapes under way have ended, or ctx ends.
func (s *Server) Close(ctx context.Context) error {
	err := s.s.Shutdown(ctx)
	if err != nil {
		err = errors.Join(err, s.s.Close())
	}
	<-s.done
	return err
}

// Text is one scrape in Prometheus' text format.
func (m *Set) Text() ([]byte, error) {
	fs, err := m.Gather()
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	for _, f := range fs {
		if _, err := expfmt.MetricFamilyToText(&b, f); err != nil {
			return nil, err
		}
	}
	return b.Bytes(), nil
}
