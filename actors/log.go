package actors

import (
	"context"
	"log/slog"
)

// quietHandler lowers protoactor's own records by a level: its Info (a start, each recovery) is Debug here, since
// the kit reports that as an Event.
type quietHandler struct{ slog.Handler }

func quiet(l *slog.Logger) *slog.Logger {
	return slog.New(quietHandler{l.Handler()}).With("lib", "protoactor")
}

func (h quietHandler) Enabled(ctx context.Context, l slog.Level) bool {
	return h.Handler.Enabled(ctx, lower(l))
}

func (h quietHandler) Handle(ctx context.Context, r slog.Record) error {
	r.Level = lower(r.Level)
	return h.Handler.Handle(ctx, r)
}

func (h quietHandler) WithAttrs(a []slog.Attr) slog.Handler {
	return quietHandler{h.Handler.WithAttrs(a)}
}

func (h quietHandler) WithGroup(name string) slog.Handler {
	return quietHandler{h.Handler.WithGroup(name)}
}

func lower(l slog.Level) slog.Level {
	if l == slog.LevelInfo {
		return slog.LevelDebug
	}
	return l
}
