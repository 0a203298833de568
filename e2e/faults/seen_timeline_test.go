package faults

import (
	"context"
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/fxamacker/cbor/v2"

	"mobula"
	"mobula/e2e/harness"
	"mobula/internal/node"
	"mobula/internal/state"
	"mobula/internal/steady"
	"mobula/wire"
	"mobula/wire/conn"
)

// asTool makes one request of a node as the command does.
func asTool[Out any](t *testing.T, ctx context.Context, n *node.Node, method string, in any) (out Out) {
	t.Helper()
	c, _, f, err := conn.Dial(ctx, n.Address(), wire.Hello{Role: wire.RoleTool, PID: int32(os.Getpid())}, conn.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }() // everything is answered
	if f != nil {
		_ = f.Close()
	}
	body, err := cbor.Marshal(in)
	if err == nil {
		err = c.Send(&wire.Request{Req: 1, Method: method, Body: body})
	}
	if err != nil {
		t.Fatal(err)
	}
	batch, err := c.Recv()
	if err != nil {
		t.Fatal(err)
	}
	reply := batch[0].(*wire.Reply)
	if reply.Err != nil {
		t.Fatal(reply.Err)
	}
	if err := cbor.Unmarshal(reply.Body, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// One document has what all nodes remember, by one clock, with the workers of each under its name.
func TestATimelineOfSeveralNodes(t *testing.T) {
	nodes := harness.StartNodesApart(t, 1, 2, 1)
	begun := time.Now()
	ctx, _ := harness.ConnectTo(t, nodes[0])
	spread(t, ctx, saidThere, nodes[:2]...)
	there, _ := harness.ConnectTo(t, nodes[1])
	if _, err := saidThere.Go(there, mobula.V(0), mobula.OnNode("2")).Get(there); err != nil {
		t.Fatal(err)
	}
	part := asTool[state.TimelinePart](t, ctx, nodes[2], state.MethodTimeline, state.TimelineRequest{})
	var doc struct {
		Other struct {
			Node string  `json:"node"`
			Base float64 `json:"base_unix_ns"`
		} `json:"otherData"`
		Events []struct {
			Name, Ph string
			Ts, Dur  float64
			PID      int
			Args     map[string]any
		} `json:"traceEvents"`
	}
	if err := json.Unmarshal(part.Body, &doc); err != nil || part.Next != 0 || len(part.Unreachable) > 0 {
		t.Fatalf("a document of %d bytes, %+v: %v", len(part.Body), part.Unreachable, err)
	}
	names, ran := make(map[int]string), make(map[string]int)
	for _, e := range doc.Events {
		if e.Name == "process_name" {
			names[e.PID], _ = e.Args["name"].(string)
		}
	}
	now := steady.New().Now() - int64(time.Hour)/2 // by the clock of the node that was asked
	for _, e := range doc.Events {
		if e.Ph != "X" {
			continue
		}
		job, _ := e.Args["job"].(string)
		ran[job+" on "+names[e.PID][strings.LastIndex(names[e.PID], " ")+1:]]++
		ago := time.Duration(now - int64(doc.Other.Base+e.Ts*1e3))
		if ago < 0 || ago > time.Since(begun)+time.Second {
			t.Errorf("a run of job %s in %q began %v ago", job, names[e.PID], ago)
		}
	}
	if ran["1-1 on n1"] == 0 || ran["1-1 on n2"] == 0 || ran["2-1 on n2"] != 1 {
		t.Errorf("runs by job and node: %v, in processes %v", ran, names)
	}
	if doc.Other.Node != "n3, n1, n2" {
		t.Errorf("the document is of %q", doc.Other.Node)
	}
}
