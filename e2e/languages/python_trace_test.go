package languages

import (
	"context"
	"encoding/hex"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"

	"mobula"
	"mobula/e2e/harness"
	"mobula/mobulatest"
	"mobula/telemetry/collector"
	_ "mobula/telemetry/otlp"
)

// What drives the programs of these tests: python/tests/helpers_of_traces.py.
const traces = "helpers_of_traces"

type pyTeller struct{}

var (
	tellers = mobula.PythonActor0[pyTeller](traces, "Teller")
	told    = mobula.PythonMethod1[pyTeller, string, string](tellers, "told")

	// A task of Go that makes an actor of Python and calls it.
	_ = mobula.Register1("e2e/tell", func(ctx context.Context, s string) (string, error) {
		a, err := tellers.Spawn(ctx)
		if err != nil {
			return "", err
		}
		return told.Go(ctx, a, mobula.V(s)).Get(ctx)
	})
)

// collecting has processes that this test starts export every span of theirs to a collector.
func collecting(t *testing.T) *collector.Collector {
	t.Helper()
	col, err := collector.HTTP()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(col.Close)
	t.Setenv("OTEL_TRACES_SAMPLER", "always_on")
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", col.Endpoint())
	t.Setenv("OTEL_BSP_SCHEDULE_DELAY", "50")
	return col
}

// drive runs a function of the Python program as the driver of a node, ends both, and gives what the driver wrote.
func drive(t *testing.T, ctx context.Context, what string, more ...string) string {
	t.Helper()
	path := mobulatest.Python(t, append([]string{"cbor2", "cloudpickle"}, more...)...)
	p := harness.MustLaunch(t, harness.NodeConfig{Dir: harness.TempDir(t), CPUs: 2, Store: 64 << 20, StoreDir: harness.TempDir(t)})
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	root, err := filepath.Abs("../../python")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(ctx, path, filepath.Join(root, "tests", traces+".py"), what, p.Address, exe)
	cmd.Env = append(os.Environ(), "PYTHONPATH="+root)
	var errs strings.Builder
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("the driver: %v\n%s", err, errs.String())
	}
	p.Stop(t) // its last spans are exported
	return strings.TrimSpace(string(out))
}

// received gives what a collector has, read back from its file.
func received(t *testing.T, col *collector.Collector) []*tracepb.Span {
	t.Helper()
	path := filepath.Join(t.TempDir(), "traces.jsonl")
	if err := col.WriteFile(path); err != nil {
		t.Fatal(err)
	}
	spans, err := collector.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return spans
}

// tree is the spans of one trace.
type tree struct {
	spans map[string]*tracepb.Span // by id
	root  *tracepb.Span
}

// oneTree checks that the spans of a program are one tree.
func oneTree(t *testing.T, spans []*tracepb.Span) tree {
	t.Helper()
	tr := tree{spans: make(map[string]*tracepb.Span)}
	for _, s := range spans {
		if s.Name == "spill" || s.Name == "restore" {
			continue // the node's own
		}
		if other := tr.spans[string(s.SpanId)]; other != nil {
			t.Errorf("%s and %s are both span %x", s.Name, other.Name, s.SpanId)
		}
		tr.spans[string(s.SpanId)] = s
		if len(s.ParentSpanId) == 0 {
			if tr.root != nil {
				t.Errorf("%s and %s are both roots", s.Name, tr.root.Name)
			}
			tr.root = s
		}
	}
	if tr.root == nil {
		t.Fatalf("none of %d spans is a root", len(spans))
	}
	for _, s := range tr.spans {
		if string(s.TraceId) != string(tr.root.TraceId) {
			t.Errorf("%s is of trace %x, the root %s of %x", s.Name, s.TraceId, tr.root.Name, tr.root.TraceId)
		}
		if s != tr.root && tr.spans[string(s.ParentSpanId)] == nil {
			t.Errorf("the parent of %s, %s, is missing", s.Name, hex.EncodeToString(s.ParentSpanId))
		}
	}
	return tr
}

// path is the names from the root to a span, without the runs between.
func (tr tree) path(s *tracepb.Span) string {
	var names []string
	for ; s != nil; s = tr.spans[string(s.ParentSpanId)] {
		if s.Name != "run" {
			names = append([]string{strings.TrimPrefix(s.Name, traces+".")}, names...)
		}
	}
	return strings.Join(names, " > ")
}

func (tr tree) want(t *testing.T, paths ...string) {
	t.Helper()
	all := make(map[string]bool)
	for _, s := range tr.spans {
		all[tr.path(s)] = true
	}
	for _, p := range paths {
		if !all[p] {
			t.Errorf("no span %s among\n%s", p, strings.Join(slices.Sorted(maps.Keys(all)), "\n"))
		}
	}
}

// A trace that begins in Python goes on in Go's tasks, in those of Python that they call, and in streams and actors.
func TestTracesOfPythonAndGoAreOneTree(t *testing.T) {
	for what, want := range map[string]struct {
		gives string
		paths []string
	}{
		"chain": {`"HELLO"`, []string{
			"main > through_go > e2e/tell > py:helpers_of_traces.Teller",
			"main > through_go > e2e/tell > py:helpers_of_traces.Teller.told > upper > inner > innermost",
		}},
		"streams": {`"6"`, []string{"outer > items", "outer > Teller", "outer > Teller.told > upper"}},
	} {
		t.Run(what, func(t *testing.T) {
			ctx, cancel := harness.Limit(t)
			defer cancel()
			col := collecting(t)
			if got := drive(t, ctx, what, "opentelemetry.trace"); got != want.gives {
				t.Errorf("the program gives %s, want %s", got, want.gives)
			}
			spans := received(t, col)
			oneTree(t, spans).want(t, want.paths...)
		})
	}
}

// A driver in Python -> task -> Go task -> Python actor -> user's span, and a graph of Dask's, in one trace: nothing is missing, and
// the phases of each task sum to its time, and the driver's calls to the driver's.
func TestOneTraceOfAProgramInPython(t *testing.T) {
	ctx, cancel := harness.Limit(t)
	defer cancel()
	col := collecting(t)
	if got := drive(t, ctx, "everything", "dask", "opentelemetry.trace"); got != `["HELLO", 1225]` {
		t.Errorf("the program gives %s", got)
	}
	tr := oneTree(t, received(t, col))
	tr.want(t, "all > through_go > e2e/tell > py:helpers_of_traces.Teller.told > upper > inner > innermost", "all > graph > end")
	phases := make(map[string]uint64) // by the task's span
	var top uint64                    // of the driver's two calls
	kids, tasks := 0, 0
	for _, s := range tr.spans {
		if strings.Contains(tr.path(s), "all > graph > ") && slices.ContainsFunc(s.Attributes, func(a *commonpb.KeyValue) bool { return a.Key == "mobula.function" }) {
			kids++
		}
		if s.Name != "blocked in get" && slices.ContainsFunc(s.Attributes, func(a *commonpb.KeyValue) bool { return a.Key == "mobula.attempt" }) {
			phases[string(s.ParentSpanId)] += s.EndTimeUnixNano - s.StartTimeUnixNano
		}
		if string(s.ParentSpanId) == string(tr.root.SpanId) {
			top += s.EndTimeUnixNano - s.StartTimeUnixNano
		}
	}
	if kids != 100 {
		t.Errorf("%d tasks of the graph, want 100", kids)
	}
	near := func(what string, got, want uint64) {
		if diff := int64(got) - int64(want); max(diff, -diff) > int64(want)/20 {
			t.Errorf("%s: %d ns, want %d ns within 5 %%", what, got, want)
		}
	}
	for _, s := range tr.spans {
		if slices.ContainsFunc(s.Attributes, func(a *commonpb.KeyValue) bool { return a.Key == "mobula.function" }) {
			tasks++
			near("the phases of "+tr.path(s), phases[string(s.SpanId)], s.EndTimeUnixNano-s.StartTimeUnixNano)
		}
	}
	if tasks != 105 { // of the graph 100 and itself, the two functions, the actor and its call
		t.Errorf("%d tasks, want 105", tasks)
	}
	near("the driver's two calls", top, tr.root.EndTimeUnixNano-tr.root.StartTimeUnixNano)
}

// A collector that is not there, or that does not answer, holds nothing up.
func TestWorkGoesOnWithoutItsCollector(t *testing.T) {
	for name, there := range map[string]bool{"away": false, "silent": true} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := harness.Limit(t)
			defer cancel()
			collecting(t)
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			if there {
				t.Cleanup(func() { _ = l.Close() }) // until then connections wait to be accepted
			} else if err := l.Close(); err != nil {
				t.Fatal(err)
			}
			t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://"+l.Addr().String())
			if got := drive(t, ctx, "many"); got != "44850" {
				t.Errorf("the program gives %s", got)
			}
		})
	}
}

// The spans of a worker that is killed are not lost with it, and lives after the first are marked.
func TestTracesOfWorkersThatDie(t *testing.T) {
	ctx, cancel := harness.Limit(t)
	defer cancel()
	col := collecting(t)
	if got := drive(t, ctx, "ends"); got != `"restarted"` {
		t.Errorf("the program gives %s", got)
	}
	spans := received(t, col)
	tr := oneTree(t, spans)
	tr.want(t, "main > killed > before", "main > Restarted > made", "main > Restarted.kill")
	marked := make(map[string]bool)
	for _, s := range tr.spans {
		for _, a := range s.Attributes {
			marked[s.Name+" "+a.Key] = true
		}
	}
	for _, w := range []string{"helpers_of_traces.Restarted mobula.restart", "helpers_of_traces.Restarted.kill mobula.attempts", "run mobula.retry"} {
		if !marked[w] {
			t.Errorf("no span has %q among %v", w, slices.Sorted(maps.Keys(marked)))
		}
	}
}

// Each task of a graph that Dask ships is in the trace, below the graph's run, with links to the tasks whose results it takes.
func TestTracesOfADaskGraphAreOneTree(t *testing.T) {
	ctx, cancel := harness.Limit(t)
	defer cancel()
	col := collecting(t)
	if got := drive(t, ctx, "graph", "dask"); got != "1225" {
		t.Errorf("the graph gives %s, want 1225", got)
	}
	spans := received(t, col)
	tr := oneTree(t, spans)
	counts := make(map[string]int)
	links := 0
	for _, s := range tr.spans {
		p := tr.path(s)
		if s.Name == "run" {
			continue
		}
		counts[p]++
		if !strings.HasPrefix(p, "graph > ") || strings.Count(p, ">") != 1 {
			continue
		}
		for _, l := range s.Links {
			links++
			if made := tr.spans[string(l.SpanId)]; made == nil || string(l.TraceId) != string(made.TraceId) {
				t.Errorf("%s has a link to span %x, which is missing", p, l.SpanId)
			} else if made.EndTimeUnixNano > s.EndTimeUnixNano {
				t.Errorf("%s ended before %s, whose result it takes", p, tr.path(made))
			}
		}
	}
	if counts["graph > start"] != 50 || counts["graph > add"] != 49 || counts["graph > end"] != 1 || links != 100 {
		t.Errorf("spans %v, %d links; want 50 of start, 49 of add, 1 of end, 100 links", counts, links)
	}
}
