package faults

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"mobula"
	"mobula/e2e/harness"
	"mobula/internal/testkit"
)

// saidThere writes where it runs, and tells it.
var saidThere = mobula.Register1("e2e/saidThere", func(ctx context.Context, ms int) (string, error) {
	at, err := harness.NodeOfWorker()
	if err != nil {
		return "", err
	}
	if _, err = fmt.Fprintf(os.Stdout, "this is written on %s\n", at); err != nil {
		return "", err
	}
	select {
	case <-time.After(time.Duration(ms) * time.Millisecond):
		return at, nil
	case <-ctx.Done():
		return "", ctx.Err()
	}
})

// Whichever node is asked, it tells of all.
func TestAnyNodeTellsOfAll(t *testing.T) {
	nodes := harness.StartNodes(t, 1, 2, 1)
	ctx, _ := harness.ConnectTo(t, nodes[0])
	refs := spread(t, ctx, saidThere, nodes[:2]...)
	asking, c := harness.ConnectTo(t, nodes[2])

	var tasks []mobula.TaskState
	for q := (mobula.Query{Limit: 5}); ; {
		p, err := c.ListTasks(asking, q)
		if err != nil || len(p.Unreachable) > 0 || p.Total != len(refs) {
			t.Fatalf("tasks: %+v, %v", p, err)
		}
		if tasks = append(tasks, p.Rows...); p.Next == "" {
			break
		}
		q.Cursor = p.Next
	}
	if len(tasks) != len(refs) {
		t.Errorf("%d tasks on all pages, want %d", len(tasks), len(refs))
	}
	for _, r := range tasks {
		if r.Node != "n1" || r.State != "FINISHED" {
			t.Errorf("a task of a driver of the first node: %+v", r)
		}
	}

	workers, err := c.ListWorkers(asking, mobula.Query{})
	if err != nil {
		t.Fatal(err)
	}
	on := make(map[string]mobula.WorkerState)
	for _, w := range workers.Rows {
		on[w.Node] = w
	}
	if on["n1"].PID == 0 || on["n2"].PID == 0 {
		t.Errorf("workers %+v", workers.Rows)
	}
	one, err := c.ListWorkers(asking, mobula.Query{Node: "n2"})
	if err != nil || !onlyOf(one.Rows, on["n2"]) {
		t.Errorf("workers of the second node: %+v, %v", one, err)
	}
	if one, err = c.ListWorkers(asking, mobula.Query{Filters: []mobula.Filter{{Field: "node", Value: "n2"}}}); err != nil || !onlyOf(one.Rows, on["n2"]) {
		t.Errorf("workers of which a filter says so: %+v, %v", one, err)
	}
	if _, err := c.ListWorkers(asking, mobula.Query{Node: "n9"}); !errors.Is(err, mobula.ErrNotFound) || !strings.Contains(err.Error(), `"n1"`) {
		t.Errorf("of a node that there is not: %v", err)
	}

	ex, err := c.Explain(asking, refs[0].ID())
	if err != nil || ex.Object == nil || ex.Object.Node != "n1" {
		t.Errorf("a result of a task of the first node's driver: %+v, %v", ex, err)
	}
	for _, n := range []string{"n1", "n2"} {
		streams, err := c.Logs(asking, on[n].ID, 0)
		if err != nil || !slices.ContainsFunc(streams, func(s mobula.LogStream) bool { return s.Node == n && strings.Contains(s.Text, "this is written on") }) {
			t.Errorf("the worker of node %s wrote %+v, %v", n, streams, err)
		}
	}
	all, err := c.Logs(asking, "", 0)
	if err != nil || !slices.ContainsFunc(all, func(s mobula.LogStream) bool { return s.Node == "n1" }) ||
		!slices.ContainsFunc(all, func(s mobula.LogStream) bool { return s.Node == "n2" }) {
		t.Errorf("the logs that there are: %+v, %v", all, err)
	}
}

// Of a value that another node's store has, it is said which node that is.
func TestWhereAnObjectLies(t *testing.T) {
	nodes := harness.StartNodes(t, 1, 1)
	ctx, c := harness.ConnectTo(t, nodes[0])
	big := bigThere.Go(ctx, mobula.V(byte(7)), mobula.OnNode("2"))
	if _, _, err := mobula.Wait(ctx, []mobula.Ref[[]byte]{big}, 1); err != nil {
		t.Fatal(err)
	}
	p, err := c.ListObjects(ctx, mobula.Query{})
	if err != nil || p.Total != 1 || p.Rows[0].Where != "on node n2" || p.Rows[0].Node != "n1" {
		t.Errorf("before it is read: %+v, %v", p.Rows, err)
	}
	if _, err := big.Get(ctx); err != nil {
		t.Fatal(err)
	}
	ex, err := c.Explain(ctx, big.ID())
	if err != nil || ex.Object.Where != "memory" || !slices.Contains(ex.Details, "it is kept on node n2") || !slices.Contains(ex.Details, "a copy is on node n1") {
		t.Errorf("after it was read: %+v, %+v, %v", ex.Details, ex.Object, err)
	}
}

// onlyOf tells whether workers are those of the node of one of them.
func onlyOf(rows []mobula.WorkerState, w mobula.WorkerState) bool {
	has := false
	for _, r := range rows {
		if r.Node != w.Node {
			return false
		}
		has = has || r.ID == w.ID
	}
	return has
}

// A node that does not answer is named in what the others tell.
func TestANodeThatDoesNotAnswerIsNamed(t *testing.T) {
	nodes := harness.StartNodes(t, 1, 2, 1)
	ctx, c := harness.ConnectTo(t, nodes[0])
	refs := spread(t, ctx, saidThere, nodes[:2]...)
	if p, err := c.ListTasks(ctx, mobula.Query{}); err != nil || len(p.Unreachable) > 0 {
		t.Fatalf("while all are there: %+v, %v", p, err)
	}
	if err := nodes[2].Close(ctx); err != nil {
		t.Fatal(err)
	}
	p, err := c.ListTasks(ctx, mobula.Query{})
	if err != nil || p.Total != 12 || len(p.Unreachable) != 1 || p.Unreachable[0].Node != "n3" || !strings.Contains(p.Unreachable[0].Why, "no answer within 5s") {
		t.Errorf("after one has ended: %d rows, %+v, %v", p.Total, p.Unreachable, err)
	}
	if _, err := c.ListTasks(ctx, mobula.Query{Node: "n3"}); !errors.Is(err, mobula.ErrDeadline) || !strings.HasPrefix(err.Error(), "deadline passed: node n3: no answer within") {
		t.Errorf("when it is asked for alone: %v", err)
	}
	runtime.KeepAlive(refs) // tasks to whose results nothing refers are not listed
	logs, err := c.Logs(ctx, "", 0)
	if err != nil || !slices.ContainsFunc(logs, func(s mobula.LogStream) bool { return s.Node == "n3" && s.Error != "" }) {
		t.Errorf("logs: %+v, %v", logs, err)
	}
}

// A clock that is ahead by an hour ends no deadline early, and what another node tells of its times is by the clock of the node that is asked.
func TestClocksThatAreApart(t *testing.T) {
	nodes := harness.StartNodesApart(t, 1, 2)
	ctx, c := harness.ConnectTo(t, nodes[0])
	var refs []mobula.Ref[string]
	for range 12 {
		refs = append(refs, saidThere.Go(ctx, mobula.V(300), mobula.Deadline(time.Now().Add(testkit.Patience()))))
	}
	at, err := mobula.GetAll(ctx, refs)
	if err != nil || !slices.Contains(at, nodes[1].Address()) {
		t.Fatalf("with a deadline they run on %v: %v", at, err)
	}
	late := saidThere.Go(ctx, mobula.V(600_000), mobula.OnNode("2"), mobula.Deadline(time.Now().Add(3*time.Second)))
	if _, err := late.Get(ctx); !errors.Is(err, mobula.ErrDeadline) {
		t.Errorf("one that takes longer than its deadline: %v", err)
	}

	there, d := harness.ConnectTo(t, nodes[1])
	last := saidThere.Go(there, mobula.V(0))
	if _, err := last.Get(there); err != nil {
		t.Fatal(err)
	}
	for _, asked := range []struct {
		c   *mobula.Cluster
		ctx context.Context
	}{{c, ctx}, {d, there}} {
		s, err := asked.c.Status(asked.ctx)
		if err != nil {
			t.Fatal(err)
		}
		p, err := asked.c.ListTasks(asked.ctx, mobula.Query{})
		if err != nil || p.Total != 14 {
			t.Fatalf("%d tasks, %+v, %v", p.Total, p.Unreachable, err)
		}
		for i, r := range p.Rows {
			if age := time.Duration(s.Now - r.Submitted); age < 0 || age > time.Minute {
				t.Errorf("asked of %s, task %s of node %s is %v old", s.Node, r.ID, r.Node, age)
			}
			if i == 0 && r.Node != "n2" {
				t.Errorf("asked of %s, the newest is %+v", s.Node, r)
			}
		}
		logs, err := asked.c.Logs(asked.ctx, "", 0)
		if err != nil || !slices.ContainsFunc(logs, func(l mobula.LogStream) bool { return l.Node == "n1" }) || !slices.ContainsFunc(logs, func(l mobula.LogStream) bool { return l.Node == "n2" }) {
			t.Fatalf("asked of %s, logs: %+v, %v", s.Node, logs, err)
		}
		for _, l := range logs {
			if age := time.Duration(s.Now - l.Changed); age < -time.Minute || age > time.Minute {
				t.Errorf("asked of %s, what %s of node %s wrote is %v old", s.Node, l.Worker, l.Node, age)
			}
		}
	}
	runtime.KeepAlive([]any{refs, late, last}) // tasks to whose results nothing refers are not listed
}

// Nodes that ask one another at the same time all get their answers: nobody's answer waits for a question of its own node.
func TestNodesThatAskEachOther(t *testing.T) {
	nodes := harness.StartNodes(t, 1, 1)
	var wg sync.WaitGroup
	for _, n := range nodes {
		ctx, c := harness.ConnectTo(t, n)
		for range 24 {
			wg.Go(func() {
				if p, err := c.ListComponents(ctx, mobula.Query{Limit: 1000}); err != nil || len(p.Unreachable) > 0 || len(p.Rows) < 20 {
					t.Errorf("asked of %s: %d rows, %+v, %v", n.Name(), len(p.Rows), p.Unreachable, err)
				}
			})
		}
	}
	wg.Wait()
}
