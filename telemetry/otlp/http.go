package otlp

import (
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"mobula/internal/errs"
	"mobula/telemetry/export"
)

// defaultTimeout of one export is OpenTelemetry's.
const defaultTimeout = 10 * time.Second

// httpClient makes a client of our own, with the variables that the SDK would read for its client: the SDK's
// client belongs to the process, and nobody can close its idle connections.
func httpClient(getenv func(string) string, of export.Signal) (*http.Client, error) {
	get := func(name string) string { // the signal's own variable comes first
		if v := strings.TrimSpace(getenv("OTEL_EXPORTER_OTLP_" + of.Name + "_" + name)); v != "" {
			return v
		}
		return strings.TrimSpace(getenv("OTEL_EXPORTER_OTLP_" + name))
	}
	tr := http.DefaultTransport.(*http.Transport).Clone()
	tr.TLSClientConfig = &tls.Config{MinVersion: tls.VersionTLS12}
	c := &http.Client{Transport: tr, Timeout: defaultTimeout}
	if v := get("TIMEOUT"); v != "" {
		ms, err := strconv.ParseUint(v, 10, 31)
		if err != nil || ms == 0 {
			return nil, errs.New(errs.CodeInvalid, "OTEL_EXPORTER_OTLP_TIMEOUT: %q: want milliseconds, more than 0; no %s are exported", v, of.What)
		}
		c.Timeout = time.Duration(ms) * time.Millisecond
	}
	if path := get("CERTIFICATE"); path != "" {
		pem, err := os.ReadFile(path)
		if err != nil {
			return nil, errs.New(errs.CodeInvalid, "OTEL_EXPORTER_OTLP_CERTIFICATE: %v; no %s are exported", err, of.What)
		}
		tr.TLSClientConfig.RootCAs = x509.NewCertPool()
		if !tr.TLSClientConfig.RootCAs.AppendCertsFromPEM(pem) {
			return nil, errs.New(errs.CodeInvalid, "OTEL_EXPORTER_OTLP_CERTIFICATE: no certificate in %q; no %s are exported", path, of.What)
		}
	}
	if cert, key := get("CLIENT_CERTIFICATE"), get("CLIENT_KEY"); cert != "" && key != "" {
		pair, err := tls.LoadX509KeyPair(cert, key)
		if err != nil {
			return nil, errs.New(errs.CodeInvalid, "OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE and _KEY: %v; no %s are exported", err, of.What)
		}
		tr.TLSClientConfig.Certificates = []tls.Certificate{pair}
	}
	return c, nil
}
