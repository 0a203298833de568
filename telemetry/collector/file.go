package collector

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"

	collectorpb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/encoding/protojson"
)

// idKeys are the fields that OTLP's JSON has in hexadecimal, where protobuf's has base64.
var idKeys = map[string]bool{"traceId": true, "spanId": true, "parentSpanId": true}

// WriteFile writes everything received to a file, as the file exporter of OpenTelemetry's collector does: one request per
// line, in OTLP's JSON.
func (c *Collector) WriteFile(path string) error {
	c.mu.Lock()
	spans := append([]*tracepb.Span(nil), c.spans...)
	c.mu.Unlock()
	var out bytes.Buffer
	for _, s := range spans {
		line, err := protojson.Marshal(&collectorpb.ExportTraceServiceRequest{ResourceSpans: []*tracepb.ResourceSpans{{ScopeSpans: []*tracepb.ScopeSpans{{Spans: []*tracepb.Span{s}}}}}})
		if err == nil {
			line, err = recode(line, func(s string) (string, error) {
				b, err := base64.StdEncoding.DecodeString(s)
				return hex.EncodeToString(b), err
			})
		}
		if err != nil {
			return fmt.Errorf("span %s: %w", s.Name, err)
		}
		out.Write(append(line, '\n'))
	}
	return os.WriteFile(path, out.Bytes(), 0o600)
}

// ReadFile reads the spans in a file of the collector's.
func ReadFile(path string) ([]*tracepb.Span, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // it was only read
	var spans []*tracepb.Span
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 64<<20)
	for n := 1; lines.Scan(); n++ {
		req := new(collectorpb.ExportTraceServiceRequest)
		line, err := recode(lines.Bytes(), func(s string) (string, error) {
			b, err := hex.DecodeString(s)
			return base64.StdEncoding.EncodeToString(b), err
		})
		if err == nil {
			err = protojson.Unmarshal(line, req)
		}
		if err != nil {
			return nil, fmt.Errorf("%s:%d: %w", path, n, err)
		}
		for _, rs := range req.ResourceSpans {
			for _, ss := range rs.ScopeSpans {
				spans = append(spans, ss.Spans...)
			}
		}
	}
	return spans, lines.Err()
}

// recode changes the encoding of the ids in a line of JSON.
func recode(line []byte, id func(string) (string, error)) ([]byte, error) {
	var v any
	d := json.NewDecoder(bytes.NewReader(line))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		return nil, err
	}
	if err := walk(v, id); err != nil {
		return nil, err
	}
	return json.Marshal(v)
}

func walk(v any, id func(string) (string, error)) error {
	switch v := v.(type) {
	case []any:
		for _, x := range v {
			if err := walk(x, id); err != nil {
				return err
			}
		}
	case map[string]any:
		for k, x := range v {
			if s, ok := x.(string); ok && idKeys[k] {
				said, err := id(s)
				if err != nil {
					return fmt.Errorf("%s %q: %w", k, s, err)
				}
				v[k] = said
			} else if err := walk(x, id); err != nil {
				return err
			}
		}
	}
	return nil
}
