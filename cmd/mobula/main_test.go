package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fxamacker/cbor/v2"
	"github.com/spf13/cobra"
	"go.uber.org/goleak"

	"mobula/internal/errs"
	"mobula/internal/state"
	"mobula/internal/testkit"
	"mobula/wire"
	wireconn "mobula/wire/conn"
)

var update = flag.Bool("update", false, "write the golden files anew")

// childEnv makes the test binary the command itself, for nodes that it starts.
const childEnv = "MOBULA_TEST_COMMAND"

func TestMain(m *testing.M) {
	if os.Getenv(childEnv) != "" {
		main()
		return
	}
	goleak.VerifyTestMain(testkit.Tidy(m))
}

// fakeNode answers requests with given values or errors, one at a time.
func fakeNode(t *testing.T, replies map[string]any) (address string) {
	t.Helper()
	dir, err := os.MkdirTemp("", "mobula-cli")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) }) // it is only temporary
	address = filepath.Join(dir, "n.sock")
	l, err := wireconn.Listen(address, wireconn.Config{})
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex // each command has a session of its own
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := l.Serve(func(h *wire.Hello, _ wireconn.Peer) (*wireconn.Session, error) {
			if h.Role != wire.RoleTool {
				t.Errorf("the command joins as %d", h.Role)
			}
			return &wireconn.Session{Welcome: &wire.Welcome{Node: "n1"}, Run: func(c *wireconn.Conn, err error) {
				for err == nil {
					var batch []wire.Msg
					batch, err = c.Recv()
					for _, m := range batch {
						if r, ok := m.(*wire.Request); ok {
							mu.Lock()
							reply := answer(t, r, replies)
							mu.Unlock()
							err = c.Send(reply)
						}
					}
				}
			}}, nil
		}); err != nil {
			t.Error(err)
		}
	}()
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		<-done
	})
	return address
}

func answer(t *testing.T, r *wire.Request, replies map[string]any) *wire.Reply {
	switch v := replies[r.Method].(type) {
	case nil:
		return &wire.Reply{Req: r.Req, Err: errs.New(errs.CodeNotFound, "no request %q", r.Method)}
	case error:
		return &wire.Reply{Req: r.Req, Err: errs.From(v)}
	case func(body []byte) any:
		return answer(t, r, map[string]any{r.Method: v(r.Body)})
	default:
		b, err := cbor.Marshal(v)
		if err != nil {
			t.Error(err)
		}
		return &wire.Reply{Req: r.Req, Body: b}
	}
}

// command runs one command with a fixed clock.
func command(t *testing.T, environ []string, args ...string) (code int, out, errOut string) {
	t.Helper()
	var o, e bytes.Buffer
	ctx := testkit.Within(t)
	a := &app{ctx: ctx, out: &o, errOut: &e, environ: environ, now: func() int64 { return time.Unix(1_700_000_100, 0).UnixNano() }}
	root := a.root()
	root.SetArgs(joinWatch(args))
	root.SetOut(&o)
	root.SetErr(&e)
	if err := root.ExecuteContext(ctx); err != nil {
		code = a.failed(err)
	}
	return code, o.String(), e.String()
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name+".golden")
	if *update {
		if err := errors.Join(os.MkdirAll("testdata", 0o755), os.WriteFile(path, []byte(got), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s: got\n%s\nwant\n%s", name, got, want)
	}
}

const (
	taskID = "0000000107e4d77f385327457f149543"
	at     = int64(1_700_000_000e9)
)

var graph = state.Graph{
	ID: taskID, Name: "graph/3", Job: "1", Tasks: 100_000, Waiting: 40_000, Queued: 9_000, Processing: 24, InLine: 8, Done: 50_000, Failed: 1, Bytes: 700 << 20, Peak: 900 << 20, Started: at,
}

var replies = map[string]any{
	state.MethodStatus: state.Status{
		Node: "n1", Address: "/run/n1.sock", PID: 42, Version: "v1.2.3", Started: at, Now: at + 3_725e9, Control: "up", Cluster: "abc", Role: "control-plane", Copies: 3, Reached: "10.0.0.1:7710", Metrics: "http://127.0.0.1:9464/metrics",
		Resources: map[string]state.Resource{"CPU": {Total: 4, Free: 1.5}, "memory": {Total: 8 << 30, Free: 4 << 30}, "tpu": {Total: 2, Free: 2}},
		Labels:    map[string]string{"mobula.io/node-id": "0", "zone": "a"},
		Leases:    3, Workers: 2, Clients: 5, Tasks: map[string]int{"RUNNING": 3, "FINISHED": 100, "FAILED": 0}, Actors: map[string]int{"ALIVE": 1},
		Graphs: []state.Graph{graph, {Name: "graph/4", Job: "1", Tasks: 2, Processing: 2, Queued: 3}},
		Jobs:   []state.Job{{ID: "1", PID: 99, Tasks: map[string]int{"RUNNING": 3}, Submitted: 103, Finished: 100, Failed: 1, Retried: 2, Objects: 7}, {ID: "2", Tasks: map[string]int{}}},
		Store: state.Store{Limit: 1 << 30, Held: 300 << 20, Sealed: 250 << 20, Writing: 50 << 20, Pinned: 10 << 20, Args: 1 << 20, Objects: 12, InMemory: 10, OnlySpilled: 2,
			Spilled: 5 << 20, SpilledEver: 6 << 20, RestoredEver: 1 << 20, SpillErrors: 1, Lost: 0, Waiting: 1,
			SpillTargets: []state.Target{{URL: "file:///data1", Health: "healthy"}, {URL: "s3://bucket/x", Health: "failed", Error: "no\nroute"}}},
		Restarts: map[string]uint64{"owner": 2}, Events: state.Events{Recorded: 1000, Kept: 900, Dropped: 5, Unfiled: 1}, Silent: []string{"owner/2"},
	},
	state.MethodTasks: state.Page[state.Task]{Total: 12_345, Truncated: true, Next: taskID, Rows: []state.Task{
		{ID: taskID, Name: "add", Func: "math/add", Kind: "task", State: "RUNNING", Job: "1", Attempt: 1, Submitted: at - 5e9, Since: at, Worker: "17", Callsite: "main.go:12"},
		{ID: taskID, Name: "sub", Kind: "actor-call", State: "FAILED", Job: "1", Attempt: 3, Submitted: at - 60e9, Since: at + 99_500_000_000, Reason: "worker process died:\nkilled " + strings.Repeat("x", 200)},
	}},
	state.MethodActors: state.Page[state.Actor]{Total: 1, Rows: []state.Actor{{ID: taskID, Type: "app/counter", Name: "hits", Namespace: "prod", State: "ALIVE", Job: "1", Created: at, Restarts: 1, Resets: 3, Pending: 2, Running: 1, PID: 77}}},
	state.MethodObjects: state.Page[state.Object]{Total: 2, Rows: []state.Object{
		{ID: taskID + ":0", Type: "return", State: "STORED", Where: "memory", Size: 64 << 20, Job: "1", Func: "math/add", Holders: 2, Tasks: 1, Pins: 1, Callsite: "main.go:12"},
		{ID: taskID + ":p1", Type: "put", State: "INLINE", Where: "message", Size: 5, Job: "1", Holders: 1}}},
	state.MethodWorkers: state.Page[state.Worker]{Total: 1, Rows: []state.Worker{{ID: "17", PID: 77, Job: "1", Language: "go", Slot: "task host", State: "ready", Leases: 2, Running: 1, Heap: 3 << 20, RSS: 30 << 20}}},
	state.MethodGraphs:  state.Page[state.Graph]{Total: 1, Rows: []state.Graph{graph}},
	state.MethodJobs:    state.Page[state.Job]{Total: 2, Rows: []state.Job{{ID: "1", Namespace: "prod", PID: 77, Submitted: 12, Finished: 9, Failed: 1, Retried: 2, Objects: 5, Tasks: map[string]int{"RUNNING": 2}}, {ID: "2"}}},
	state.MethodNodes: state.Page[state.Node]{Total: 2, Rows: []state.Node{
		{ID: "0", Name: "host-1", Role: "control-plane", Free: map[string]float64{"CPU": 1.5, "memory": 2 << 30}, StoreLimit: 1 << 30, StoreHeld: 300 << 20, State: state.NodeAlive, Address: "/tmp/a/node.sock", PID: 77, Version: "0.4.0", Epoch: 3, Resources: map[string]float64{"CPU": 4, "memory": 8 << 30},
			Labels: map[string]string{"mobula.io/node-id": "0", "zone": "a"}},
		{ID: "1", Name: "host-2", State: state.NodeSilent, Role: "data", Address: "/tmp/b/node.sock", Reached: "10.0.0.2:7710", PID: 78, Heard: 21_500_000_000, Resources: map[string]float64{"CPU": 2}}}},
	state.MethodComponents: state.Page[state.Component]{Total: 2, Rows: []state.Component{
		{Path: "root/raylet", Kind: "raylet"}, {Path: "root/raylet/owner/1", Kind: "owner", Restarts: 2, Depth: 7, Bound: 65536, Handled: 1234, Error: "panic: x"}}},
	state.MethodMemory: state.Memory{Store: state.Store{Limit: 1 << 30, Held: 64 << 20, Waiting: 1}, Inline: 5, Objects: state.Page[state.Object]{Total: 9, Truncated: true, Next: "5/" + taskID + ":0",
		Rows: []state.Object{{ID: taskID + ":0", Type: "return", State: "STORED", Where: "spilled", Size: 64 << 20, Job: "1"}}}},
	state.MethodExplain: state.Explanation{ID: taskID, Kind: "task", State: "PENDING_ARGS_AVAIL", Summary: "waits since 2s for 1 of 1 arguments", Details: []string{"argument x is PENDING"},
		Task: &state.Task{Name: "add", Callsite: "main.go:12"},
		Next: &state.Explanation{ID: taskID + ":0", Kind: "object", State: "PENDING", Summary: "is not there yet", Object: &state.Object{Type: "return", Func: "math/sub"}}},
}

func TestOutput(t *testing.T) {
	addr := fakeNode(t, replies)
	for _, args := range []string{"status", "list tasks", "list actors", "list objects", "list workers", "list graphs", "list jobs", "list nodes", "list components", "memory", "explain " + taskID} {
		name := strings.ReplaceAll(strings.TrimSuffix(args, " "+taskID), " ", "-")
		code, out, errOut := command(t, nil, append(strings.Fields(args), "--address", addr)...)
		if code != exitDone || errOut != "" {
			t.Errorf("%s: exit %d, %s", args, code, errOut)
		}
		golden(t, name, out)
	}
	if code, _, errOut := command(t, []string{"MOBULA_DIR=/no/such"}, "stop"); code != exitNoNode || !strings.Contains(errOut, "/no/such/node.sock") {
		t.Errorf("of MOBULA_DIR: exit %d, %s", code, errOut)
	}
	// The directory and the environment name the node as well.
	for _, c := range []struct{ env, args []string }{{nil, []string{"--address", filepath.Dir(addr)}}, {[]string{"MOBULA_ADDRESS=" + addr}, nil}} {
		code, _, errOut := command(t, c.env, append([]string{"status"}, c.args...)...)
		if wrongName := c.args != nil; (code == exitNoNode) != wrongName { // this node's socket has another name
			t.Errorf("%v %v: exit %d, %s", c.env, c.args, code, errOut)
		}
	}
}

// Every --json is one line that reads back as the type that was sent, with no other field.
func TestJSON(t *testing.T) {
	addr := fakeNode(t, replies)
	for args, v := range map[string]any{
		"status": new(nodeStatus), "list tasks": new(state.Page[state.Task]), "list actors": new(state.Page[state.Actor]), "list objects": new(state.Page[state.Object]),
		"list workers": new(state.Page[state.Worker]), "list graphs": new(state.Page[state.Graph]), "list jobs": new(state.Page[state.Job]), "list nodes": new(state.Page[state.Node]), "list components": new(state.Page[state.Component]), "memory": new(state.Memory), "explain " + taskID: new(state.Explanation), "version": new(versions),
	} {
		code, out, errOut := command(t, nil, append(strings.Fields(args), "--json", "--address", addr)...)
		dec := json.NewDecoder(strings.NewReader(out))
		dec.DisallowUnknownFields()
		if err := dec.Decode(v); code != exitDone || err != nil || strings.Count(out, "\n") != 1 {
			t.Errorf("%s: exit %d, %v, %s%s", args, code, err, out, errOut)
		}
	}
	code, out, _ := command(t, nil, "list", "tasks", "--json", "--address", addr)
	if want := `"total":12345,"truncated":true,"next":"` + taskID + `"`; code != exitDone || !strings.Contains(out, want) {
		t.Errorf("a page does not say what it leaves out: %s", out)
	}
}

func TestExitCodes(t *testing.T) {
	addr := fakeNode(t, map[string]any{
		state.MethodExplain: errs.New(errs.CodeNotFound, "task x is not known"), state.MethodStatus: errs.New(errs.CodeDeadline, "late"),
		state.MethodMemory: errs.New(errs.CodeInvalid, "bad"), state.MethodWorkers: errs.New(errs.CodePanic, "oops"),
	})
	for _, c := range []struct {
		args string
		code int
		say  string
	}{
		{"explain x --address " + addr, exitNotFound, "task x is not known"},
		{"status --address " + addr, exitTimeout, "late"},
		{"memory --address " + addr, exitUsage, "bad"},
		{"list workers --address " + addr, exitFailed, "oops"},
		{"status --address /no/such.sock", exitNoNode, "/no/such.sock"},
		{"list tasks --filter x --address " + addr, exitUsage, `"x"`},
		{"list tasks --filter x=1", exitUsage, "they have id, name"},
		{"list tasks --limit 0", exitUsage, "--limit 0"},
		{"list tasks --limit 10001", exitUsage, "10000"},
		{"explain", exitUsage, "accepts 1 arg"},
		{"status extra", exitUsage, "extra"},
		{"list nothing", exitUsage, "nothing"},
		{"frobnicate", exitUsage, "frobnicate"},
		{"status --nope", exitUsage, "--nope"},
		{"start --store-size 1x --log-level loud", exitUsage, "--log-level"},
		{"config --config /no/such.yaml", exitUsage, "/no/such.yaml"},
		{"timeline --since -1s --address " + addr, exitUsage, "--since"},
	} {
		code, out, errOut := command(t, nil, strings.Fields(c.args)...)
		if code != c.code || !strings.Contains(errOut, c.say) || out != "" {
			t.Errorf("%s: exit %d, %q, %q; want %d and %s", c.args, code, errOut, out, c.code, c.say)
		}
		var msg struct {
			Error string `json:"error"`
			Exit  int    `json:"exit"`
		}
		code, _, errOut = command(t, nil, append(strings.Fields(c.args), "--json")...)
		if err := json.Unmarshal([]byte(errOut), &msg); strings.Contains(c.args, "--nope") {
			continue // what comes behind a wrong flag is not read
		} else if err != nil || msg.Exit != code || !strings.Contains(msg.Error, strings.Trim(c.say, `"`)) {
			t.Errorf("%s --json: %v, %s", c.args, err, errOut)
		}
	}
}

func TestAnInterruptedCommandSaysSo(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if code := run(ctx, []string{"status", "--address", "/no/such.sock"}, nil, io.Discard, io.Discard); code != exitInterrupted {
		t.Errorf("exit %d", code)
	}
}

// Every command says what it does, and shows how.
func TestEveryCommandHasHelpWithExamples(t *testing.T) {
	var walk func(c *cobra.Command)
	walk = func(c *cobra.Command) {
		if c.Short == "" || c.Example == "" || !strings.Contains(c.Example, "mobula") {
			t.Errorf("%s: short %q, example %q", c.CommandPath(), c.Short, c.Example)
		}
		path := strings.Fields(c.CommandPath())[1:]
		code, out, _ := command(t, nil, append(path, "--help")...)
		if code != exitDone || !strings.Contains(out, "Examples:") || !strings.Contains(out, "--json") {
			t.Errorf("%s --help: exit %d, %s", c.CommandPath(), code, out)
		}
		for _, s := range c.Commands() {
			if s.Name() != "help" {
				walk(s)
			}
		}
	}
	walk((&app{}).root())
	_, out, _ := command(t, nil, "start", "--help")
	golden(t, "start-help", out)
	code, out, _ := command(t, []string{"MOBULA_STORE_SIZE=2GiB", "MOBULA_CONFIG=/dev/null"}, "config")
	if code != exitDone || !strings.Contains(out, "store.size = 2GiB  (MOBULA_STORE_SIZE)") || !strings.Contains(out, "log.level = info  (default)") {
		t.Errorf("config: exit %d\n%s", code, out)
	}
}

func TestTimelineIsWrittenWholeOrNotAtAll(t *testing.T) {
	doc := []byte(`{"traceEvents":[` + strings.Repeat("1,", 1000) + `1]}`)
	var fail atomic.Bool
	addr := fakeNode(t, map[string]any{state.MethodTimeline: func(body []byte) any {
		var r state.TimelineRequest
		if err := cbor.Unmarshal(body, &r); err != nil {
			return err
		}
		if r.Offset > 500 && fail.Load() {
			return errs.New(errs.CodeNotFound, "not kept any more")
		}
		p := state.TimelinePart{Token: "t", Body: doc[r.Offset:min(int(r.Offset)+300, len(doc))]}
		if end := r.Offset + 300; end < int64(len(doc)) {
			p.Next = end
		}
		return p
	}})
	path := filepath.Join(t.TempDir(), "t.json")
	code, out, errOut := command(t, nil, "timeline", "-o", path, "--address", addr)
	got, err := os.ReadFile(path)
	if code != exitDone || err != nil || !bytes.Equal(got, doc) || !strings.Contains(out, path) {
		t.Errorf("exit %d, %v, %d bytes of %d, %s%s", code, err, len(got), len(doc), out, errOut)
	}
	if code, out, _ = command(t, nil, "timeline", "-o", "-", "--address", addr); code != exitDone || out != string(doc) {
		t.Errorf("exit %d, %d bytes on standard output", code, len(out))
	}
	fail.Store(true)
	broken := filepath.Join(t.TempDir(), "b.json")
	if code, _, _ = command(t, nil, "timeline", "-o", broken, "--address", addr); code != exitNotFound {
		t.Errorf("exit %d", code)
	}
	if left, err := filepath.Glob(filepath.Join(filepath.Dir(broken), "*")); err != nil || len(left) > 0 {
		t.Errorf("%v is left of a timeline that failed, %v", left, err)
	}
	if code, _, errOut = command(t, nil, "timeline", "-o", "/no/such/dir/t.json", "--address", addr); code != exitUsage || !strings.Contains(errOut, "/no/such/dir") {
		t.Errorf("exit %d, %s", code, errOut)
	}
}
