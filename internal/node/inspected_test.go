package node

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/fxamacker/cbor/v2"
	"go.uber.org/goleak"

	"mobula/internal/client"
	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/internal/registry"
	"mobula/internal/state"
	"mobula/internal/testkit"
	"mobula/wire"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(holdEnv); dir != "" {
		hold(dir)
		return
	}
	if is, err := Worker(context.Background()); is { // else it would run all tests once more, until its node kills it
		if err != nil && !errors.Is(err, errs.ErrDisconnected) {
			fmt.Fprintln(os.Stderr, "a worker:", err)
			os.Exit(1)
		}
		return
	}
	// A probe of the gossip that is under way when its node ends waits for its time-out.
	goleak.VerifyTestMain(testkit.Tidy(m), goleak.IgnoreAnyFunction("github.com/hashicorp/memberlist.(*Memberlist).probeNode"))
}

// gate lets the tasks "state/wait" end.
var gate = make(chan chan struct{}, 1)

func init() {
	registry.Register(&registry.Function{Name: "state/wait", Invoke: func(ctx context.Context, _ *registry.Call) ([]registry.Output, any, error) {
		g := <-gate
		gate <- g
		select {
		case <-g:
		case <-ctx.Done():
		}
		return []registry.Output{{Inline: []byte("done"), Size: 4}}, nil, ctx.Err()
	}})
	registry.Register(&registry.Function{Name: "state/quick", Invoke: func(context.Context, *registry.Call) ([]registry.Output, any, error) {
		return []registry.Output{{Inline: []byte("x"), Size: 1}}, nil, nil
	}})
	registry.Register(&registry.Function{Name: "state/actor", Kind: wire.TaskActorCreate, Invoke: func(context.Context, *registry.Call) ([]registry.Output, any, error) {
		return []registry.Output{{}}, 1, nil
	}})
}

// running is a node with a client, both ended by the test.
func running(t *testing.T, cfg Config, tel Telemetry) (*Node, *client.Client) {
	t.Helper()
	cfg.Dir, cfg.NoGCS = filepath.Join(t.TempDir(), "n"), true // the directory itself is open to others
	if cfg.StoreBytes == 0 {
		cfg.StoreBytes = 64 << 20
	}
	n, err := Start(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := n.StartTelemetry(tel); err != nil {
		t.Fatal(err)
	}
	c, err := n.Attach(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), testkit.Patience())
		defer cancel()
		if err := errors.Join(c.Close(ctx), n.Close(ctx)); err != nil {
			t.Error(err)
		}
	})
	return n, c
}

// shut is a gate that the test opens.
func shut(t *testing.T) (open func()) {
	t.Helper()
	g := make(chan struct{})
	gate <- g
	closed := false
	open = func() {
		if !closed {
			closed = true
			close(g)
		}
	}
	t.Cleanup(func() { open(); <-gate })
	return open
}

func ask[Out any](t *testing.T, c *client.Client, method string, in any) (out Out, err error) {
	t.Helper()
	body, err := cbor.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	ctx := testkit.Within(t)
	reply, err := c.Request(ctx, method, body)
	if err != nil {
		return out, err
	}
	if err := cbor.Unmarshal(reply, &out); err != nil {
		t.Fatal(err)
	}
	return out, nil
}

func must[Out any](t *testing.T, c *client.Client, method string, in any) Out {
	t.Helper()
	out, err := ask[Out](t, c, method, in)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// until asks again until what it says is so.
func until[Out any](t *testing.T, c *client.Client, method string, in any, ok func(Out) bool) (out Out) {
	t.Helper()
	defer func() {
		if t.Failed() {
			t.Logf("%s says %+v", method, out)
		}
	}()
	testkit.Eventually(t, method+" says so", func() bool {
		out = must[Out](t, c, method, in)
		return ok(out)
	})
	return out
}

func submit(t *testing.T, c *client.Client, o *wire.TaskOptions, args ...wire.Arg) *client.Handle {
	t.Helper()
	spec := &wire.TaskSpec{ID: c.Root().NextTask(), Parent: c.Root().Task, Opts: o, Args: args, Callsite: "state_test.go:1"}
	hs, err := c.Submit(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	return hs[0]
}

var (
	waiting = &wire.TaskOptions{Func: "state/wait", NumReturns: 1, Label: "waiter"}
	quick   = &wire.TaskOptions{Func: "state/quick", NumReturns: 1}
	greedy  = &wire.TaskOptions{Func: "state/quick", NumReturns: 1, Resources: []wire.Resource{{Name: "CPU", Amount: 2000}}}
	hungry  = &wire.TaskOptions{Func: "state/quick", NumReturns: 1, Resources: []wire.Resource{{Name: "CPU", Amount: 9000}}}
)

func TestTasksAreListedFilteredAndPaged(t *testing.T) {
	open := shut(t)
	_, c := running(t, Config{CPUs: 2}, Telemetry{})
	var hs []*client.Handle
	for range 25 {
		hs = append(hs, submit(t, c, waiting))
	}
	hs = append(hs, submit(t, c, quick, wire.Arg{Ref: hs[0].ID()}))
	running := until(t, c, state.MethodTasks, state.Query{Filters: []state.Filter{{Field: "state", Value: "RUNNING"}}}, func(p state.Page[state.Task]) bool { return p.Total == 2 })
	for _, r := range running.Rows {
		if r.Name != "waiter" || r.Func != "state/wait" || r.Kind != state.KindTask || r.Job != "1" || r.Attempt != 1 || r.Worker == "" || r.Callsite != "state_test.go:1" || r.Since == 0 {
			t.Errorf("a running task is %+v", r)
		}
	}
	seen := map[string]bool{}
	q := state.Query{Limit: 7, Filters: []state.Filter{{Field: "func", Value: "state/wait"}}}
	for {
		p := must[state.Page[state.Task]](t, c, state.MethodTasks, q)
		if p.Total != 25 || len(p.Rows) > 7 || p.Truncated != (p.Next != "") {
			t.Fatalf("page %+v", p)
		}
		for _, r := range p.Rows {
			if seen[r.ID] {
				t.Fatalf("%s is on two pages", r.ID)
			}
			seen[r.ID] = true
		}
		if !p.Truncated {
			break
		}
		q.Cursor = p.Next
	}
	if len(seen) != 25 {
		t.Errorf("%d tasks on all pages, want 25", len(seen))
	}
	for f, want := range map[string]int{"state=PENDING_ARGS_AVAIL": 1, "state!=PENDING_ARGS_AVAIL": 25, "kind=task": 26, "job=2": 0, "name!=waiter": 1, "attempt=0": 24, "parent=" + c.Root().Task.String(): 26} {
		filter, err := state.ParseFilter(f)
		if err != nil {
			t.Fatal(err)
		}
		if p := must[state.Page[state.Task]](t, c, state.MethodTasks, state.Query{Filters: []state.Filter{filter}}); p.Total != want {
			t.Errorf("%s: %d tasks, want %d", f, p.Total, want)
		}
	}
	for _, q := range []state.Query{{Limit: -3}, {Cursor: "x"}, {Filters: []state.Filter{{Field: "colour"}}}, {Filters: []state.Filter{{Field: "state", Value: "TIRED"}}}} {
		if _, err := ask[state.Page[state.Task]](t, c, state.MethodTasks, q); !errors.Is(err, errs.ErrInvalid) {
			t.Errorf("%+v: %v", q, err)
		}
	}
	open()
	if _, err := c.Get(t.Context(), hs...); err != nil {
		t.Fatal(err)
	}
	s := until(t, c, state.MethodStatus, nil, func(s state.Status) bool { return s.Tasks["FINISHED"] == 26 })
	if len(s.Silent) > 0 || s.Jobs[0].Submitted != 26 || s.Jobs[0].Finished != 26 || s.Resources["CPU"].Total != 2 || s.PID != os.Getpid() || s.Control != "off" || s.Store.Limit != 64<<20 {
		t.Errorf("status %+v", s)
	}
	if s.Events.Recorded == 0 || s.Events.Dropped != 0 {
		t.Errorf("events %+v", s.Events)
	}
}

func TestExplanations(t *testing.T) {
	open := shut(t)
	_, c := running(t, Config{CPUs: 2}, Telemetry{})
	first := submit(t, c, waiting)
	until(t, c, state.MethodExplain, state.ExplainRequest{ID: first.ID().Task.String()}, func(e state.Explanation) bool {
		return e.State == "RUNNING" && strings.HasPrefix(e.Summary, "runs on embedded worker")
	})
	dependent := submit(t, c, quick, wire.Arg{Ref: first.ID()})
	e := until(t, c, state.MethodExplain, state.ExplainRequest{ID: dependent.ID().Task.String()}, func(e state.Explanation) bool { return e.State == "PENDING_ARGS_AVAIL" })
	if !strings.Contains(e.Summary, "1 of 1 arguments") || e.Next == nil || e.Next.Next == nil || e.Next.ID != first.ID().String() || e.Next.Next.State != "RUNNING" {
		t.Errorf("the dependent: %+v", e)
	}
	second := submit(t, c, greedy) // two CPUs, of which the first task has one
	e = until(t, c, state.MethodExplain, state.ExplainRequest{ID: second.ID().Task.String()}, func(e state.Explanation) bool {
		return strings.Contains(e.Summary, "2 CPU (1 of 2 free)") // once idle leases are returned
	})
	if e.State != "PENDING_NODE_ASSIGNMENT" || !strings.Contains(e.Summary, "behind 0 others of 1") {
		t.Errorf("the greedy: %+v", e)
	}
	never := submit(t, c, hungry)
	e = until(t, c, state.MethodExplain, state.ExplainRequest{ID: never.ID().Task.String()}, func(e state.Explanation) bool { return e.State == "FAILED" })
	if !strings.Contains(e.Summary, "CPU") || !strings.Contains(e.Summary, "9") {
		t.Errorf("the infeasible: %+v", e)
	}
	o := must[state.Explanation](t, c, state.MethodExplain, state.ExplainRequest{ID: first.ID().String()})
	if o.Kind != "object" || !strings.Contains(o.Summary, "its task") || !slices.ContainsFunc(o.Details, func(s string) bool {
		return strings.Contains(s, fmt.Sprintf("held by the driver of job 1 (process %d)", os.Getpid()))
	}) {
		t.Errorf("the object: %+v", o)
	}
	if same := must[state.Explanation](t, c, state.MethodExplain, state.ExplainRequest{ID: first.ID().Task.String() + "00000000"}); same.ID != o.ID {
		t.Errorf("by its digits: %+v", same)
	}
	if line := state.Explainer(c.Request)(t.Context(), first.ID()); !strings.Contains(line, "its task") || !strings.Contains(line, "runs on embedded worker") {
		t.Errorf("a get that waits says %q", line)
	}
	open()
	if _, err := c.Get(t.Context(), first, dependent, second); err != nil {
		t.Fatal(err)
	}
	task := second.ID().Task.String()
	second.Release()
	e = until(t, c, state.MethodExplain, state.ExplainRequest{ID: task}, func(e state.Explanation) bool { return strings.Contains(e.Summary, "nothing refers to it") })
	if e.State != "FINISHED" {
		t.Errorf("a task that is gone: %+v", e)
	}
	for id, want := range map[string]error{
		"zz": errs.ErrInvalid, "zz:0": errs.ErrInvalid, strings.Repeat("z", 40): errs.ErrInvalid, ids.RootTask(77, 1).String(): errs.ErrNotFound,
		ids.Derive(c.Root().Task, 1<<40).String(): errs.ErrNotFound, c.Root().Task.Put(99).String(): errs.ErrNotFound,
	} {
		if _, err := ask[state.Explanation](t, c, state.MethodExplain, state.ExplainRequest{ID: id}); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", id, err, want)
		}
	}
}

func TestObjectsAndMemory(t *testing.T) {
	_, c := running(t, Config{}, Telemetry{})
	small, err := c.Put(t.Context(), wire.Value{Data: []byte("small")})
	if err != nil {
		t.Fatal(err)
	}
	var large []*client.Handle
	for i := range 3 {
		b, err := c.Create(t.Context(), c.Root().NextPut(), uint64(200<<10*(i+1)))
		if err != nil {
			t.Fatal(err)
		}
		h, err := b.Seal(nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		large = append(large, h)
	}
	m := until(t, c, state.MethodMemory, state.Query{Limit: 2}, func(m state.Memory) bool { return m.Objects.Total == 4 && m.Objects.Rows[0].State == "STORED" })
	if r := m.Objects.Rows; len(r) != 2 || r[0].Size != 600<<10 || r[1].Size != 400<<10 || r[0].Where != "memory" || r[0].Type != "put" || r[0].Holders != 1 || !m.Objects.Truncated {
		t.Errorf("the first page: %+v", m.Objects)
	}
	m = must[state.Memory](t, c, state.MethodMemory, state.Query{Limit: 2, Cursor: m.Objects.Next})
	if r := m.Objects.Rows; len(r) != 2 || r[0].Size != 200<<10 || r[1].ID != small.ID().String() || r[1].Where != "message" || m.Objects.Truncated || m.Objects.Total != 4 {
		t.Errorf("the second page: %+v", m.Objects)
	}
	p := until(t, c, state.MethodObjects, state.Query{Filters: []state.Filter{{Field: "state", Value: "STORED"}}}, func(p state.Page[state.Object]) bool { return p.Total == 3 })
	if !slices.IsSortedFunc(p.Rows, func(a, b state.Object) int { return strings.Compare(a.ID, b.ID) }) {
		t.Errorf("objects are not in order: %+v", p.Rows)
	}
	e := must[state.Explanation](t, c, state.MethodExplain, state.ExplainRequest{ID: large[0].ID().String()})
	if !strings.Contains(e.Summary, "204800 bytes in memory") || !slices.ContainsFunc(e.Details, func(s string) bool { return strings.HasPrefix(s, "store: ") }) {
		t.Errorf("a stored object: %+v", e)
	}
	s := until(t, c, state.MethodStatus, nil, func(s state.Status) bool { return s.Store.Objects == 3 })
	if s.Store.Held < 1200<<10 || s.Store.Held > s.Store.Limit {
		t.Errorf("the store: %+v", s.Store)
	}
	u := must[state.Usage](t, c, state.MethodUsage, nil) // it is of now, whatever is kept for the status
	if u.Held < 1200<<10 || u.Held != s.Store.Held || u.Backed < u.Held || u.Private == 0 || u.Processes < 1 || u.Spilled != 0 {
		t.Errorf("in use: %+v", u)
	}
	for _, h := range large {
		h.Release()
	}
	until(t, c, state.MethodUsage, nil, func(u state.Usage) bool { return u.Held == 0 })
	if _, err := ask[state.Page[state.Object]](t, c, state.MethodObjects, state.Query{Filters: []state.Filter{{Field: "where", Value: "memory"}}}); !errors.Is(err, errs.ErrInvalid) {
		t.Errorf("a filter by what the owner does not know: %v", err)
	}
}

func TestActorsWorkersAndComponents(t *testing.T) {
	n, c := running(t, Config{CPUs: 2}, Telemetry{})
	h := submit2(t, c, wire.TaskActorCreate, &wire.TaskOptions{Func: "state/actor", NumReturns: 1})
	if _, err := c.Get(t.Context(), h); err != nil {
		t.Fatal(err)
	}
	as := until(t, c, state.MethodActors, state.Query{}, func(p state.Page[state.Actor]) bool { return p.Total == 1 && p.Rows[0].State == "ALIVE" })
	if a := as.Rows[0]; a.ID != h.ID().Task.String() || a.Type != "state/actor" || a.PID != os.Getpid() || a.Job != "1" {
		t.Errorf("the actor is %+v", a)
	}
	if text := string(must[state.Text](t, c, state.MethodMetrics, nil).Body); !strings.Contains(text, `mobula_actors_alive{class="state/actor"} 1`) {
		t.Errorf("the metrics do not show it:\n%s", text)
	}
	ws := must[state.Page[state.Worker]](t, c, state.MethodWorkers, state.Query{Filters: []state.Filter{{Field: "slot", Value: "embedded"}}})
	if ws.Total != 2 || ws.Rows[0].PID != os.Getpid() || ws.Rows[0].RSS == 0 {
		t.Errorf("workers %+v", ws)
	}
	if ws = must[state.Page[state.Worker]](t, c, state.MethodWorkers, state.Query{}); ws.Total != 2 {
		t.Errorf("the node itself is listed as a worker: %+v", ws)
	}
	cs := must[state.Page[state.Component]](t, c, state.MethodComponents, state.Query{})
	kinds := map[string]bool{}
	for _, r := range cs.Rows {
		kinds[r.Kind] = true
	}
	for _, k := range []string{"owner", "scheduler", "objectstore"} {
		if !kinds[k] {
			t.Errorf("no %s among %v", k, kinds)
		}
	}
	if len(cs.Rows) != len(n.sys.Tree()) {
		t.Errorf("%d components, the tree has %d", len(cs.Rows), len(n.sys.Tree()))
	}
	if _, err := ask[state.ActorReply](t, c, state.MethodActorGet, state.ActorRequest{Name: "x"}); err == nil {
		t.Error("a named actor was found without a control plane")
	}
	if _, err := ask[state.Stopping](t, c, state.MethodStop, state.StopRequest{}); !errors.Is(err, errs.ErrPermission) {
		t.Errorf("a node inside a program was stopped from outside: %v", err)
	}
	stop := n.StopRequested()
	for range 2 {
		if s := must[state.Stopping](t, c, state.MethodStop, state.StopRequest{Reason: "test"}); s.PID != os.Getpid() {
			t.Errorf("stopping %+v", s)
		}
	}
	<-stop
	if _, err := ask[state.Pong](t, c, "no.such", nil); !errors.Is(err, errs.ErrNotFound) {
		t.Errorf("an unknown request: %v", err)
	}
	if _, err := ask[state.Pong](t, c, state.MethodTasks, map[string]int{"limt": 3}); !errors.Is(err, errs.ErrInvalid) {
		t.Errorf("a misspelt field: %v", err)
	}
	if p := must[state.Pong](t, c, state.MethodPing, nil); p.PID != os.Getpid() || p.Node != n.Name() {
		t.Errorf("pong %+v", p)
	}
}

func submit2(t *testing.T, c *client.Client, kind wire.TaskKind, o *wire.TaskOptions) *client.Handle {
	t.Helper()
	spec := &wire.TaskSpec{ID: c.Root().NextTask(), Parent: c.Root().Task, Kind: kind, Opts: o}
	spec.Actor = ids.ActorID(spec.ID)
	hs, err := c.Submit(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	return hs[0]
}

func TestTimelineIsReadInParts(t *testing.T) {
	n, c := running(t, Config{CPUs: 2}, Telemetry{})
	var hs []*client.Handle
	for range 3000 {
		hs = append(hs, submit(t, c, quick))
	}
	if _, err := c.Get(t.Context(), hs...); err != nil {
		t.Fatal(err)
	}
	var doc []byte
	r, parts := state.TimelineRequest{}, 0
	for over := false; !over; {
		p := must[state.TimelinePart](t, c, state.MethodTimeline, r)
		doc = append(doc, p.Body...)
		r.Token, r.Offset = p.Token, p.Next
		over = p.Next == 0
		parts++
	}
	var d struct {
		TraceEvents []struct {
			Ph   string         `json:"ph"`
			Name string         `json:"name"`
			Args map[string]any `json:"args"`
		} `json:"traceEvents"`
	}
	if err := json.Unmarshal(doc, &d); err != nil {
		t.Fatal(err)
	}
	runs := map[any]bool{}
	for _, e := range d.TraceEvents {
		if e.Ph == "X" && e.Name == "state/quick" {
			runs[e.Args["task"]] = true
		}
	}
	st := n.obs.Recorder().Stats()
	if len(runs) != 3000 && st.Dropped == 0 {
		t.Errorf("%d runs are drawn in %d parts; events %+v", len(runs), parts, st)
	}
	if len(doc) > 4<<20 && parts < 2 {
		t.Errorf("%d bytes in one part", len(doc))
	}
	for _, r := range []state.TimelineRequest{{Token: "nope"}, {Token: r.Token, Offset: 1}} {
		if _, err := ask[state.TimelinePart](t, c, state.MethodTimeline, r); !errors.Is(err, errs.ErrNotFound) {
			t.Errorf("%+v: %v", r, err)
		}
	}
}

// A client of ours has few requests at a node at once, and asks the others in turn; one that keeps to no bound has the rest refused.
func TestAClientsRequestsAreBounded(t *testing.T) {
	n, c := running(t, Config{}, Telemetry{})
	for range maxColdRunning { // all that run at once are busy
		n.requests.running <- struct{}{}
	}
	answers := make(chan error, 2*maxColdWaiting)
	for range cap(answers) {
		go func() {
			_, err := ask[state.Pong](t, c, state.MethodPing, nil)
			answers <- err
		}()
	}
	wild := makeSession(c.ID()+1, wire.RoleTool, 0, 0)
	defer wild.finish()
	got := make(replies, 2*maxColdWaiting)
	wild.Outlet = got
	for i := range maxColdWaiting + 10 {
		n.requests.cold(wild, &wire.Request{Req: uint64(i), Method: state.MethodPing})
	}
	for range 10 {
		if r := <-got; !errors.Is(r.Err, errs.ErrBacklog) {
			t.Errorf("one too many: %v", r.Err)
		}
	}
	for range maxColdRunning {
		<-n.requests.running
	}
	for range maxColdWaiting {
		if r := <-got; r.Err != nil {
			t.Error(r.Err)
		}
	}
	for range cap(answers) {
		if err := <-answers; err != nil {
			t.Error(err)
		}
	}
}

// replies is the way to a client of a test.
type replies chan *wire.Reply

func (r replies) Push(m wire.Msg) { r <- m.(*wire.Reply) }
func (replies) Flush()            {}
func (replies) Close()            {}
