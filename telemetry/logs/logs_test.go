package logs

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/slogtest"

	"mobula/internal/errs"
	"mobula/telemetry"
	"mobula/wire"
)

var sampled = wire.TraceContext{TraceID: [16]byte{0xaa, 15: 1}, SpanID: [8]byte{0xbb}, Flags: 1}

func TestRecordsInASpanHaveItsIDs(t *testing.T) {
	const traceID, spanID = "aa000000000000000000000000000001", "bb00000000000000"
	in := telemetry.WithTrace(context.Background(), sampled)
	for _, c := range []struct {
		name string
		ctx  context.Context
		log  func(*slog.Logger) *slog.Logger
		want map[string]any
	}{
		{"plain", in, func(l *slog.Logger) *slog.Logger { return l }, map[string]any{"trace_id": traceID, "span_id": spanID, "k": "v"}},
		{"grouped", in, func(l *slog.Logger) *slog.Logger { return l.With("a", 1).WithGroup("g") },
			map[string]any{"trace_id": traceID, "span_id": spanID, "a": 1.0, "g": map[string]any{"k": "v"}}},
		{"no span", context.Background(), func(l *slog.Logger) *slog.Logger { return l.With("a", 1) }, map[string]any{"a": 1.0, "k": "v"}},
	} {
		var out bytes.Buffer
		h, err := newHandler(&out, Config{Format: "json"})
		if err != nil {
			t.Fatal(err)
		}
		c.log(slog.New(h)).InfoContext(c.ctx, "hello", "k", "v")
		var got map[string]any
		if err := json.Unmarshal(out.Bytes(), &got); err != nil {
			t.Fatal(err)
		}
		for _, k := range []string{"time", "level", "msg"} {
			delete(got, k)
		}
		want, _ := json.Marshal(c.want)
		if have, _ := json.Marshal(got); string(have) != string(want) {
			t.Errorf("%s: %s, want %s", c.name, have, want)
		}
	}
}

func TestFurtherAttributes(t *testing.T) {
	type key struct{}
	var out bytes.Buffer
	h := Traced(slog.NewTextHandler(&out, nil), func(ctx context.Context) []slog.Attr {
		if v, ok := ctx.Value(key{}).(string); ok {
			return []slog.Attr{slog.String("task", v)}
		}
		return nil
	})
	slog.New(h).InfoContext(context.WithValue(context.Background(), key{}, "t1"), "x")
	slog.New(h).Info("y")
	if lines := strings.Split(out.String(), "\n"); !strings.Contains(lines[0], "task=t1") || strings.Contains(lines[1], "task=") {
		t.Errorf("got %q", lines)
	}
}

// The handler is one as package slog asks for.
func TestConforms(t *testing.T) {
	var out bytes.Buffer
	h, err := newHandler(&out, Config{Format: "json", Level: "debug"})
	if err != nil {
		t.Fatal(err)
	}
	if err := slogtest.TestHandler(h, func() []map[string]any {
		var all []map[string]any
		for line := range bytes.SplitSeq(bytes.TrimSpace(out.Bytes()), []byte("\n")) {
			var m map[string]any
			if err := json.Unmarshal(line, &m); err != nil {
				t.Fatal(err)
			}
			all = append(all, m)
		}
		return all
	}); err != nil {
		t.Error(err)
	}
}

func TestFilesLevelsAndMistakes(t *testing.T) {
	path := filepath.Join(t.TempDir(), "logs", "node.log")
	log, closeLog, err := New(Config{File: path, Size: 2000, Files: 2, Level: "warn"})
	if err != nil {
		t.Fatal(err)
	}
	for range 100 {
		log.Info("not this one")
		log.Warn("this one", "pad", strings.Repeat("x", 60))
	}
	if err := closeLog(); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(path + "*")
	if err != nil || len(files) != 3 {
		t.Fatalf("files %v, %v; want 3", files, err)
	}
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil || len(b) > 2000 || !bytes.Contains(b, []byte("this one")) || bytes.Contains(b, []byte("not this")) {
			t.Errorf("%s: %d bytes, %v", f, len(b), err)
		}
	}
	for _, cfg := range []Config{{Level: "loud"}, {Format: "xml"}} {
		if _, _, err := New(cfg); !errors.Is(err, errs.ErrInvalid) {
			t.Errorf("%+v: %v", cfg, err)
		}
	}
}
