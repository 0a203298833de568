package logs

import (
	"context"
	"io"
	"log/slog"
	"os"

	"go.opentelemetry.io/otel/trace"

	"mobula/internal/errs"
	"mobula/telemetry/rotate"
)

// Config of a logger. The zero value is text at info level to standard error.
type Config struct {
	Level  string // debug, info, warn, error; empty: info
	Format string // text, json; empty: text
	File   string // empty: standard error
	Size   int64  // of the file, bytes; default 100 MB, as Ray's
	Files  int    // full ones that are kept; default 5, as Ray's
}

// New makes a logger; end closes its file.
func New(cfg Config) (log *slog.Logger, end func() error, err error) {
	out, end := io.Writer(os.Stderr), func() error { return nil }
	var file *rotate.Writer
	if cfg.File != "" {
		if cfg.Size <= 0 {
			cfg.Size = 100_000_000
		}
		if cfg.Files <= 0 {
			cfg.Files = 5
		}
		file = rotate.New(cfg.File, cfg.Size, cfg.Files)
		out, end = file, file.Close
	}
	h, err := newHandler(out, cfg)
	if err != nil {
		return nil, nil, err
	}
	if file != nil { // open it now: an error at the first line would lose that line silently
		if _, err := file.Write(nil); err != nil {
			return nil, nil, errs.New(errs.CodeInvalid, "log file %q: %v; give another (log.file, --log-file, MOBULA_LOG_FILE)", cfg.File, err)
		}
	}
	return slog.New(h), end, nil
}

func newHandler(out io.Writer, cfg Config) (slog.Handler, error) {
	opts := &slog.HandlerOptions{}
	if cfg.Level != "" {
		var l slog.Level
		if err := l.UnmarshalText([]byte(cfg.Level)); err != nil {
			return nil, errs.New(errs.CodeInvalid, "log level %q: want debug, info, warn or error", cfg.Level)
		}
		opts.Level = l
	}
	switch cfg.Format {
	case "", "text":
		return Traced(slog.NewTextHandler(out, opts)), nil
	case "json":
		return Traced(slog.NewJSONHandler(out, opts)), nil
	}
	return nil, errs.New(errs.CodeInvalid, "log format %q: want text or json", cfg.Format)
}

// Traced adds trace_id and span_id to records whose context is in a span, and the attributes that more give for
// the context.
func Traced(next slog.Handler, more ...func(context.Context) []slog.Attr) slog.Handler {
	return &traced{next: next, base: next, more: more}
}

// traced keeps the ids at the top level, whatever groups the logger has opened: it adds them to base, and then
// applies the groups and attributes again.
type traced struct {
	next, base slog.Handler
	then       []func(slog.Handler) slog.Handler
	more       []func(context.Context) []slog.Attr
}

func (h *traced) Enabled(ctx context.Context, l slog.Level) bool { return h.next.Enabled(ctx, l) }

func (h *traced) Handle(ctx context.Context, r slog.Record) error {
	var attrs []slog.Attr
	if sc := trace.SpanContextFromContext(ctx); sc.IsValid() {
		attrs = append(attrs, slog.String("trace_id", sc.TraceID().String()), slog.String("span_id", sc.SpanID().String()))
	}
	for _, f := range h.more {
		attrs = append(attrs, f(ctx)...)
	}
	if len(attrs) == 0 {
		return h.next.Handle(ctx, r)
	}
	if len(h.then) == 0 {
		r = r.Clone()
		r.AddAttrs(attrs...)
		return h.base.Handle(ctx, r)
	}
	out := h.base.WithAttrs(attrs)
	for _, f := range h.then {
		out = f(out)
	}
	return out.Handle(ctx, r)
}

func (h *traced) with(f func(slog.Handler) slog.Handler) *traced {
	c := *h
	c.next = f(h.next)
	c.then = append(h.then[:len(h.then):len(h.then)], f)
	return &c
}

func (h *traced) WithAttrs(attrs []slog.Attr) slog.Handler {
	return h.with(func(n slog.Handler) slog.Handler { return n.WithAttrs(attrs) })
}

func (h *traced) WithGroup(name string) slog.Handler {
	return h.with(func(n slog.Handler) slog.Handler { return n.WithGroup(name) })
}
