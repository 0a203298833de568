package node

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"

	"mobula/actors"
	"mobula/internal/client"
	"mobula/internal/errs"
	"mobula/internal/registry"
	"mobula/internal/state"
	"mobula/internal/testkit"
	"mobula/objectstore/spill"
	"mobula/telemetry"
	"mobula/telemetry/collector"
	_ "mobula/telemetry/otlp"
	"mobula/wire"
)

func init() {
	registry.Register(&registry.Function{Name: "observe/work", Invoke: func(_ context.Context, c *registry.Call) ([]registry.Output, any, error) {
		for end := time.Now().Add(time.Millisecond); time.Now().Before(end); {
			runtime.Gosched()
		}
		return []registry.Output{{Inline: c.Inputs[0].Value.Data[:1:1], Size: 1}}, nil, nil
	}})
}

// collecting makes the process export to a collector.
func collecting(t *testing.T) *collector.Collector {
	t.Helper()
	c, err := collector.GRPC()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", c.Endpoint())
	t.Setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")
	t.Setenv("OTEL_BSP_SCHEDULE_DELAY", "20")
	return c
}

func putLarge(t *testing.T, c *client.Client, bytes uint64) *client.Handle {
	t.Helper()
	b, err := c.Create(t.Context(), c.Root().NextPut(), bytes)
	if err != nil {
		t.Fatal(err)
	}
	b.Bytes()[0] = 'x'
	h, err := b.Seal(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// The issue's own: a 1 ms task with a restored 64 MiB argument, exported over OTLP to a
// collector. Phases follow each other without a gap, include the restore, and last from the submission to the end, which is before the value is here.
func TestSpansOfATaskWithARestoredArgument(t *testing.T) {
	coll := collecting(t)
	_, c := running(t, Config{CPUs: 2, StoreBytes: 96 << 20}, Telemetry{})
	arg := putLarge(t, c, 64<<20)
	putLarge(t, c, 64<<20) // which has no room beside it
	where := until(t, c, state.MethodObjects, state.Query{}, func(p state.Page[state.Object]) bool { return p.Total == 2 })
	if !slices.ContainsFunc(where.Rows, func(o state.Object) bool { return o.ID == arg.ID().String() && o.Where == "spilled" }) {
		t.Fatalf("the argument is not spilled: %+v", where.Rows)
	}
	spec := &wire.TaskSpec{ID: c.Root().NextTask(), Parent: c.Root().Task, Opts: &wire.TaskOptions{Func: "observe/work", NumReturns: 1}, Args: []wire.Arg{{Ref: arg.ID()}}}
	spec.Trace = telemetry.NewSampler(1).Decide(wire.TraceContext{}, spec.ID)
	begin := time.Now()
	spec.Submitted = begin.UnixNano()
	hs, err := c.Submit(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Get(t.Context(), hs[0]); err != nil {
		t.Fatal(err)
	}
	got := time.Now()
	ctx := testkit.Within(t)
	var mine []*tracepb.Span
	if _, err := coll.Wait(ctx, func(all []*tracepb.Span) bool {
		mine = slices.DeleteFunc(slices.Clone(all), func(s *tracepb.Span) bool { return [16]byte(s.TraceId) != spec.ID.Trace() })
		i := slices.IndexFunc(mine, func(s *tracepb.Span) bool { return len(s.ParentSpanId) == 0 })
		return i >= 0 && slices.ContainsFunc(mine, func(s *tracepb.Span) bool { // the last phase: they come in order, in one batch or several
			return len(s.ParentSpanId) > 0 && s.EndTimeUnixNano >= mine[i].EndTimeUnixNano
		})
	}); err != nil {
		t.Fatal(err)
	}
	top := mine[slices.IndexFunc(mine, func(s *tracepb.Span) bool { return len(s.ParentSpanId) == 0 })]
	var kids []*tracepb.Span
	for _, s := range mine {
		if string(s.ParentSpanId) == string(top.SpanId) {
			kids = append(kids, s)
		}
	}
	slices.SortFunc(kids, func(a, b *tracepb.Span) int { return int(int64(a.StartTimeUnixNano) - int64(b.StartTimeUnixNano)) })
	last := uint64(spec.Submitted)
	took := map[string]time.Duration{}
	for _, s := range kids {
		if s.StartTimeUnixNano != last {
			t.Errorf("%s begins %d ns after what was before it has ended", s.Name, int64(s.StartTimeUnixNano-last))
		}
		last = s.EndTimeUnixNano
		took[s.Name] = time.Duration(s.EndTimeUnixNano - s.StartTimeUnixNano)
	}
	if took["restore arguments"] <= 0 || took["run"] < time.Millisecond {
		t.Errorf("phases %v", took)
	}
	if last != top.EndTimeUnixNano || int64(last) > got.UnixNano() {
		t.Errorf("the phases %v end %d ns before the task's span, and %d ns before its value was here", took, int64(top.EndTimeUnixNano-last), got.UnixNano()-int64(last))
	}
	if s := must[state.Status](t, c, state.MethodStatus, nil); s.Export.SpansDropped != 0 {
		t.Error("spans were dropped")
	}
}

func TestARestartIsASpan(t *testing.T) {
	coll := collecting(t)
	n, c := running(t, Config{}, Telemetry{})
	n.sys.Faults.Inject(actors.Fault{Kind: "scheduler", Nth: 1, Action: actors.PanicMidStep})
	must[state.Page[state.Worker]](t, c, state.MethodWorkers, state.Query{}) // asks the scheduler
	ctx := testkit.Within(t)
	if _, err := coll.Wait(ctx, func(all []*tracepb.Span) bool {
		return slices.ContainsFunc(all, func(s *tracepb.Span) bool {
			return s.Name == "restart scheduler" && s.EndTimeUnixNano >= s.StartTimeUnixNano && s.Status.Message != ""
		})
	}); err != nil {
		t.Fatal(err)
	}
	s := must[state.Status](t, c, state.MethodStatus, nil)
	if s.Restarts["scheduler"] != 1 {
		t.Errorf("restarts %v", s.Restarts)
	}
}

// fakeSpiller ends what it is given at once.
type fakeSpiller struct{ err error }

func (f fakeSpiller) Write(items []spill.Item, done func([]spill.Location, error)) {
	done(make([]spill.Location, len(items)), f.err)
}
func (f fakeSpiller) Copy(objs []spill.Copy, done func([]spill.Location, error)) {
	done(make([]spill.Location, len(objs)), f.err)
}
func (f fakeSpiller) Read(_ spill.Location, _ []byte, done func(error)) { done(f.err) }
func (fakeSpiller) Remove([]spill.Location)                             {}
func (fakeSpiller) Fallback(uint64, bool) (*os.File, string, error)     { return nil, "", nil }
func (fakeSpiller) Reopen(string) (*os.File, uint64, error)             { return nil, 0, nil }
func (fakeSpiller) Has(spill.Location) bool                             { return true }
func (fakeSpiller) Release(string)                                      {}
func (fakeSpiller) Recover([]spill.Location) map[spill.FileKey]uint64   { return nil }

func TestSpillsAndRestoresAreSpans(t *testing.T) {
	coll := collecting(t)
	n, _ := running(t, Config{}, Telemetry{})
	calls := 0
	good, bad := n.obs.Seen(fakeSpiller{}), n.obs.Seen(fakeSpiller{errs.ErrOutOfDisk})
	good.Write([]spill.Item{{Data: make([]byte, 10)}, {Data: make([]byte, 5)}}, func(l []spill.Location, err error) {
		if calls++; err != nil || len(l) != 2 {
			t.Errorf("write gives %v, %v", l, err)
		}
	})
	bad.Read(spill.Location{}, make([]byte, 7), func(err error) {
		if calls++; !errors.Is(err, errs.ErrOutOfDisk) {
			t.Errorf("read gives %v", err)
		}
	})
	if calls != 2 {
		t.Errorf("%d answers", calls)
	}
	ctx := testkit.Within(t)
	all, err := coll.Wait(ctx, func(all []*tracepb.Span) bool { return len(all) >= 2 })
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range all {
		text := ""
		for _, a := range s.Attributes {
			text += a.Key + "=" + a.Value.String() + " "
		}
		switch s.Name {
		case "spill":
			if !strings.Contains(text, "mobula.bytes=int_value:15") || !strings.Contains(text, "mobula.objects=int_value:2") || s.Status.Message != "" {
				t.Errorf("the spill: %s %v", text, s.Status)
			}
		case "restore":
			if !strings.Contains(text, "mobula.bytes=int_value:7") || s.Status.Message == "" {
				t.Errorf("the restore: %s %v", text, s.Status)
			}
		default:
			t.Errorf("a span %q", s.Name)
		}
	}
}

// What a store does by itself for want of room is seen: each spill and restore is a span, and counts
// in the metrics, for as long as the node lives.
func TestTheStoresOwnSpillsAndRestoresAreSeen(t *testing.T) {
	coll := collecting(t)
	n, c := running(t, Config{StoreBytes: 96 << 20}, Telemetry{})
	first := putLarge(t, c, 64<<20)
	putLarge(t, c, 63<<20)
	got, err := c.Get1(t.Context(), first)
	if err != nil {
		t.Fatal(err)
	}
	if got.Value.Data[0] != 'x' || len(got.Value.Data) != 64<<20 {
		t.Errorf("restored: %d bytes, the first %q", len(got.Value.Data), got.Value.Data[0])
	}
	got.Release()
	ctx := testkit.Within(t)
	sizes := map[string]string{"spill": "int_value:67108864", "restore": "int_value:67108864"}
	if _, err := coll.Wait(ctx, func(all []*tracepb.Span) bool {
		for _, s := range all {
			if want, ok := sizes[s.Name]; ok && strings.Contains(fmt.Sprint(s.Attributes), want) && s.Status.GetMessage() == "" && s.EndTimeUnixNano > s.StartTimeUnixNano {
				delete(sizes, s.Name)
			}
		}
		return len(sizes) == 0
	}); err != nil {
		t.Fatalf("no spans %v: %v", slices.Collect(maps.Keys(sizes)), err)
	}
	values := func() map[string]float64 {
		out := make(map[string]float64)
		text := string(must[state.Text](t, c, state.MethodMetrics, nil).Body)
		for line := range strings.Lines(text) {
			name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
			if v, err := strconv.ParseFloat(value, 64); err == nil && strings.HasPrefix(name, "mobula_store_") {
				out[name] = v
			}
		}
		return out
	}
	before := values()
	for name, least := range map[string]float64{
		"mobula_store_spills_total": 2, "mobula_store_restores_total": 1, "mobula_store_spilled_bytes_total": 127 << 20, "mobula_store_restored_bytes_total": 64 << 20,
		"mobula_store_spill_seconds_total": 1e-6, "mobula_store_restore_seconds_total": 1e-6,
	} {
		if before[name] < least {
			t.Errorf("%s is %v, want at least %v", name, before[name], least)
		}
	}
	n.sys.Faults.Inject(actors.Fault{Kind: "objectstore", Nth: 1, Action: actors.PanicMidStep})
	until(t, c, state.MethodObjects, state.Query{}, func(state.Page[state.Object]) bool { return n.sys.Restarts()["objectstore"] == 1 })
	crashed := time.Now()
	until(t, c, state.MethodStatus, nil, func(s state.Status) bool { return time.Duration(s.Store.Age) < time.Since(crashed) }) // the figures are new
	after := values()
	for name, v := range before {
		if strings.HasSuffix(name, "_total") && after[name] < v {
			t.Errorf("%s fell from %v to %v with the core", name, v, after[name])
		}
	}
}

// Spans that a program made itself are exported with those of its tasks, at once: their process may be gone by then.
func TestSpansOfAProgramAreExported(t *testing.T) {
	coll := collecting(t)
	_, c := running(t, Config{}, Telemetry{})
	trace, id := []byte("0123456789abcdef"), []byte("spanspan")
	good := state.Span{Trace: trace, ID: id, Parent: []byte("parentid"), Name: "load", Start: 5, End: 9, Error: "ValueError: x", Attrs: map[string]any{"n": 3, "s": "t", "b": true, "f": 0.5},
		Events: []state.SpanEvent{{Name: "half", At: 7}}, Links: []state.SpanLink{{Trace: trace, ID: []byte("linklink")}}}
	if r := must[state.SpansReply](t, c, state.MethodSpans, state.SpansRequest{Spans: []state.Span{good}}); r != (state.SpansReply{Exported: true}) {
		t.Errorf("the reply is %+v", r)
	}
	ctx := testkit.Within(t)
	all, err := coll.Wait(ctx, func(all []*tracepb.Span) bool { return len(all) > 0 })
	if err != nil {
		t.Fatal(err)
	}
	s := all[0]
	if string(s.TraceId) != string(trace) || string(s.SpanId) != string(id) || string(s.ParentSpanId) != "parentid" || s.Name != "load" || s.StartTimeUnixNano != 5 || s.EndTimeUnixNano != 9 ||
		len(s.Attributes) != 4 || s.Status.GetMessage() != "ValueError: x" || len(s.Events) != 2 || s.Events[0].Name != "half" || string(s.Links[0].SpanId) != "linklink" {
		t.Errorf("the span is %v", s)
	}
	for _, bad := range []state.Span{{Trace: trace[:3], ID: id, Name: "x"}, {Trace: trace, ID: nil, Name: "x"}, {Trace: trace, ID: id}, {Trace: trace, ID: id, Name: "x", Start: 2, End: 1}, {Trace: trace, ID: id, Parent: id[:2], Name: "x"}} {
		if _, err := ask[state.SpansReply](t, c, state.MethodSpans, state.SpansRequest{Spans: []state.Span{bad}}); !errors.Is(err, errs.ErrInvalid) {
			t.Errorf("%+v gives %v", bad, err)
		}
	}
	if _, err := ask[state.SpansReply](t, c, state.MethodSpans, state.SpansRequest{Spans: make([]state.Span, state.MaxSpans+1)}); !errors.Is(err, errs.ErrInvalid) {
		t.Errorf("too many give %v", err)
	}
}

func TestWithoutAnExporterSpansOfAProgramAreRefused(t *testing.T) {
	_, c := running(t, Config{}, Telemetry{})
	r := must[state.SpansReply](t, c, state.MethodSpans, state.SpansRequest{Spans: []state.Span{{Trace: []byte("0123456789abcdef"), ID: []byte("spanspan"), Name: "x"}}})
	if r.Exported {
		t.Error("it says that they are exported")
	}
}

func TestMetricsAreServed(t *testing.T) {
	n, c := running(t, Config{}, Telemetry{Metrics: "127.0.0.1:0"})
	h := submit(t, c, quick)
	if _, err := c.Get(t.Context(), h); err != nil {
		t.Fatal(err)
	}
	until(t, c, state.MethodStatus, nil, func(s state.Status) bool { return s.Tasks["FINISHED"] == 1 })
	tr := &http.Transport{}
	defer tr.CloseIdleConnections()
	token, err := os.ReadFile(n.MetricsToken())
	if err != nil {
		t.Fatal(err)
	}
	if mode, loose := othersMay(n.MetricsToken()); loose || mode == 0 {
		t.Errorf("the token's file has the mode %v", mode)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, n.MetricsURL(), nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	resp, err := (&http.Client{Transport: tr, Timeout: testkit.Patience()}).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(resp.Body)
	if err = errors.Join(err, resp.Body.Close()); err != nil {
		t.Fatal(err)
	}
	for _, w := range []string{`mobula_tasks{state="FINISHED"} 1`, `mobula_task_changes_total{state="FINISHED"} 1`, `mobula_store_bytes{what="limit"} 6.7108864e+07`, "mobula_jobs 1", "mobula_scrape_silent_components 0"} {
		if !strings.Contains(string(body), w) {
			t.Errorf("no %s in\n%s", w, body)
		}
	}
	if text := must[state.Text](t, c, state.MethodMetrics, nil); !strings.Contains(string(text.Body), "mobula_jobs 1") {
		t.Error("the request gives other metrics")
	}
}

func TestEventFilesOfAKeptNode(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "n")
	n, err := Start(t.Context(), Config{Dir: dir, Keep: true, NoGCS: true, StoreBytes: 16 << 20, StoreDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	if err := n.StartTelemetry(Telemetry{FileBytes: 1 << 20, Files: 1}); err != nil {
		t.Fatal(err)
	}
	c, err := n.Attach(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	h := submit(t, c, quick)
	if _, err := c.Get(t.Context(), h); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), testkit.Patience())
	defer cancel()
	if err := errors.Join(c.Close(ctx), n.Close(ctx)); err != nil {
		t.Error(err)
	}
	b, err := os.ReadFile(filepath.Join(dir, "events", "tasks.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	id := h.ID().Task.String()
	for _, w := range []string{"PENDING_NODE_ASSIGNMENT", "FINISHED"} {
		if !slices.ContainsFunc(strings.Split(string(b), "\n"), func(l string) bool { return strings.Contains(l, id) && strings.Contains(l, w) }) {
			t.Errorf("no %s of the task in\n%s", w, b)
		}
	}
}
