package main

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/fxamacker/cbor/v2"

	"mobula/internal/state"
)

// inCluster are a node's answers for several, of which n3 is silent.
func inCluster(t *testing.T) (addr string, asked func() string) {
	var mu sync.Mutex
	var node string // guarded by mu: that was asked for last
	missing := []state.Unreachable{{Node: "n3", Why: "no answer within 5s"}}
	with := func(reply any) func([]byte) any {
		return func(body []byte) any {
			var in struct {
				Node string `json:"node"`
			}
			if err := cbor.Unmarshal(body, &in); err != nil {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			node = in.Node
			return reply
		}
	}
	addr = fakeNode(t, map[string]any{
		state.MethodTasks: with(state.Page[state.Task]{Total: 2, Unreachable: missing, Rows: []state.Task{
			{ID: taskID, Name: "add", State: "RUNNING", Job: "1-1", Node: "n1"}, {ID: taskID, Name: "sub", State: "FINISHED", Job: "2-1", Node: "n2"}}}),
		state.MethodMemory: with(state.Memory{
			Store: state.Store{Limit: 1 << 30}, Objects: state.Page[state.Object]{Unreachable: missing},
			Nodes: []state.NodeMemory{{Node: "n1", Store: state.Store{Limit: 1 << 30}}, {Node: "n2", Store: state.Store{Limit: 2 << 30, Waiting: 3}, Inline: 7}},
		}),
		state.MethodLogs: with(state.Logs{Streams: []state.LogStream{
			{Worker: "worker/1-3", Stream: "out", Path: "/n/worker-3.out", Size: 5, Text: "here\n", Node: "n1"},
			{Worker: "worker/2-3", Stream: "out", Path: "/n/worker-3.out", Size: 5, Text: "there\n", Node: "n2"}, {Node: "n3", Error: "no answer within 5s"}}}),
		state.MethodTimeline: with(state.TimelinePart{Token: "t", Body: []byte("{}"), Unreachable: missing}),
		state.MethodStatus:   with(state.Status{Node: "n2"}),
	})
	return addr, func() string {
		mu.Lock()
		defer mu.Unlock()
		return node
	}
}

// What several nodes have is shown with the node of each row; a node that did not answer is named in a warning, and in JSON.
func TestSilentNodesAreNamed(t *testing.T) {
	addr, _ := inCluster(t)
	file := filepath.Join(t.TempDir(), "t.json")
	for args, want := range map[string]string{
		"list tasks": "NODE", "memory": "store of n2: 0 B of 2.0 GiB held", "logs": "n2", "logs " + taskID: "/n/worker-3.out on node n2", "timeline -o " + file: "t.json",
	} {
		code, out, errOut := command(t, nil, append(strings.Fields(args), "--address", addr)...)
		if code != exitDone || !strings.Contains(out, want) || errOut != "WARNING: what node n3 has is missing: no answer within 5s\n" {
			t.Errorf("%s: exit %d, %s\n%s", args, code, out, errOut)
		}
		code, out, _ = command(t, nil, append(strings.Fields(args), "--json", "--address", addr)...)
		if code != exitDone || !json.Valid([]byte(out)) || !strings.Contains(out, `"n3"`) {
			t.Errorf("%s --json: exit %d, %s", args, code, out)
		}
	}
	_, out, _ := command(t, nil, "list", "tasks", "--address", addr)
	if lines := strings.Split(out, "\n"); len(lines) < 3 || strings.Fields(lines[0])[1] != "NODE" || strings.Fields(lines[1])[1] != "n1" || strings.Fields(lines[2])[1] != "n2" {
		t.Errorf("the nodes of tasks:\n%s", out)
	}
}

func TestOneNodeCanBeChosen(t *testing.T) {
	addr, asked := inCluster(t)
	for _, args := range []string{"list tasks", "memory", "logs", "timeline -o -", "status"} {
		if code, _, errOut := command(t, nil, append(strings.Fields(args), "--node", "n2", "--address", addr)...); code != exitDone || asked() != "n2" {
			t.Errorf("%s: exit %d, of node %q; %s", args, code, asked(), errOut)
		}
	}
	if code, _, _ := command(t, nil, "list", "nodes", "--node", "n2", "--address", addr); code != exitUsage {
		t.Errorf("one node of the list of nodes: exit %d", code)
	}
}

// The line about nodes names the first that are not alive, and counts the others.
func TestManyLostNodesAreCounted(t *testing.T) {
	nodes := state.Page[state.Node]{Rows: []state.Node{{Name: "n1", State: state.NodeAlive}}}
	for i := range 100 {
		nodes.Rows = append(nodes.Rows, state.Node{Name: fmt.Sprintf("d%d", i), State: state.NodeDead})
	}
	addr := fakeNode(t, map[string]any{state.MethodStatus: state.Status{Node: "n1"}, state.MethodNodes: nodes})
	if code, out, errOut := command(t, nil, "status", "--address", addr); code != exitDone || !strings.Contains(out, "(not alive: d0, d1, d2, d3, d4, d5, d6, d7 and 92 more)") {
		t.Errorf("exit %d, %s%s", code, out, errOut)
	}
}
