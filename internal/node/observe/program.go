package observe

import (
	"context"
	"errors"
	"slices"
	"strings"

	"go.opentelemetry.io/otel/attribute"

	"mobula/internal/errs"
	"mobula/internal/state"
	"mobula/telemetry"
)

// TakeSpans exports spans that a client's program made. They count as the node's own do: what finds no room is dropped.
func (o *Observer) TakeSpans(_ context.Context, r state.SpansRequest) (state.SpansReply, error) {
	if len(r.Spans) > state.MaxSpans {
		return state.SpansReply{}, errs.New(errs.CodeInvalid, "%d spans: want at most %d at a time", len(r.Spans), state.MaxSpans)
	}
	spans := make([]telemetry.Span, len(r.Spans))
	for i := range r.Spans {
		if err := programSpan(&spans[i], &r.Spans[i]); err != nil {
			return state.SpansReply{}, err
		}
	}
	sp := o.spans.Load()
	if sp == nil {
		return state.SpansReply{}, nil
	}
	out := state.SpansReply{Exported: true}
	for i := range spans {
		if !sp.queue(spans[i]) {
			out.Dropped++
		}
	}
	return out, nil
}

func programSpan(out *telemetry.Span, s *state.Span) error {
	var l telemetry.Link
	if !spanLink(&l, s.Trace, s.ID) || len(s.Parent) != 0 && len(s.Parent) != len(out.Parent) || s.Name == "" || s.End < s.Start {
		return errs.New(errs.CodeInvalid, "span %q: ids of %d, %d and %d bytes, from %d to %d", s.Name, len(s.Trace), len(s.ID), len(s.Parent), s.Start, s.End)
	}
	*out = telemetry.Span{TraceID: l.TraceID, ID: l.ID, Name: s.Name, Start: s.Start, End: s.End, Attrs: spanAttrs(s.Attrs)}
	copy(out.Parent[:], s.Parent)
	if s.Error != "" {
		out.Err = errors.New(s.Error)
	}
	for _, e := range s.Events {
		out.Events = append(out.Events, telemetry.Event{Name: e.Name, At: e.At, Attrs: spanAttrs(e.Attrs)})
	}
	for _, o := range s.Links {
		if spanLink(&l, o.Trace, o.ID) {
			out.Links = append(out.Links, l)
		}
	}
	return nil
}

func spanLink(out *telemetry.Link, trace, id []byte) bool {
	return len(trace) == copy(out.TraceID[:], trace) && len(trace) == len(out.TraceID) && len(id) == copy(out.ID[:], id) && len(id) == len(out.ID)
}

func spanAttrs(kv map[string]any) []attribute.KeyValue {
	out := make([]attribute.KeyValue, 0, len(kv))
	for k, v := range kv {
		switch v := v.(type) {
		case string:
			out = append(out, attribute.String(k, v))
		case bool:
			out = append(out, attribute.Bool(k, v))
		case int64:
			out = append(out, attribute.Int64(k, v))
		case uint64:
			out = append(out, attribute.Int64(k, int64(v)))
		case float64:
			out = append(out, attribute.Float64(k, v))
		}
	}
	slices.SortFunc(out, func(a, b attribute.KeyValue) int { return strings.Compare(string(a.Key), string(b.Key)) })
	return out
}
