package api

import (
	"context"
	"slices"
	"strings"
	"testing"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"

	"mobula"
	"mobula/internal/testkit"
	"mobula/mobulatest"
	"mobula/telemetry/collector"
	_ "mobula/telemetry/otlp"
)

// The spans of calls, how they nest and what they are linked to are the same, whichever way they go.
func TestCallsHaveTheSameSpans(t *testing.T) {
	byOwner, straight := spansOfCalls(t, "0"), spansOfCalls(t, "1")
	if !slices.Equal(byOwner, straight) {
		t.Errorf("by the owner:\n%s\nstraight:\n%s", strings.Join(byOwner, "\n"), strings.Join(straight, "\n"))
	}
}

func spansOfCalls(t *testing.T, setting string) (lines []string) {
	t.Run(setting, func(t *testing.T) {
		coll, err := collector.HTTP()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(coll.Close)
		for name, value := range map[string]string{"MOBULA_STRAIGHT_CALLS": setting, "OTEL_EXPORTER_OTLP_ENDPOINT": coll.Endpoint(), "OTEL_BSP_SCHEDULE_DELAY": "20", "OTEL_TRACES_SAMPLER": "always_on"} {
			t.Setenv(name, value)
		}
		c := mobulatest.Start(t, mobula.WithCPUs(2))
		ctx := c.Context(t.Context())
		a := spawn(ctx, t, 0)
		r, err := relays.Spawn(ctx)
		if err != nil {
			t.Fatal(err)
		}
		must(relayVia.Go(ctx, r, mobula.V(a), mobula.V(1)).Get(ctx))(t)
		ended := tallyInc.Go(ctx, a, mobula.V(1))
		must(ended.Get(ctx))(t)
		must(relayTakes.Go(ctx, ended).Get(ctx))(t)                            // linked to a call that had ended
		must(relayTakes.Go(ctx, tallyInc.Go(ctx, a, mobula.V(1))).Get(ctx))(t) // and to one that may not have
		if _, err := relayPanic.Go(ctx, r).Get(ctx); err == nil {
			t.Error("a panic gives no error")
		}
		lines = spanTree(t, coll)
	})
	return lines
}

// spanTree waits for the spans of the nine tasks, and gives a line for each: its path, what it says, and where its links lead. Phases that may take no time are left out.
func spanTree(t *testing.T, coll *collector.Collector) (lines []string) {
	attr := func(s *tracepb.Span, key string) string {
		for _, kv := range s.Attributes {
			if kv.Key == key {
				return kv.Value.GetStringValue()
			}
		}
		return ""
	}
	all, err := coll.Wait(testkit.Within(t), func(all []*tracepb.Span) bool {
		tasks, runs := 0, 0
		for _, s := range all {
			if s.Name == "run" {
				runs++
			} else if attr(s, "mobula.function") != "" {
				tasks++
			}
		}
		return tasks >= 9 && runs >= 9
	})
	if err != nil {
		t.Error(context.Cause(t.Context()), err)
	}
	byID := make(map[string]*tracepb.Span)
	for _, s := range all {
		byID[string(s.SpanId)] = s
	}
	var path func(s *tracepb.Span) string
	path = func(s *tracepb.Span) string {
		if s == nil {
			return ""
		}
		return path(byID[string(s.ParentSpanId)]) + "/" + s.Name
	}
	for _, s := range all {
		if s.Name != "run" && attr(s, "mobula.function") == "" {
			continue
		}
		words := []string{path(s), attr(s, "mobula.task.state"), s.Status.GetCode().String()}
		for _, kv := range s.Attributes {
			if kv.Key != "mobula.callsite" { // which only some have
				words = append(words, kv.Key)
			}
		}
		for _, l := range s.Links {
			words = append(words, "->", path(byID[string(l.SpanId)]))
		}
		lines = append(lines, strings.Join(words, " "))
	}
	slices.Sort(lines)
	return lines
}
