package api

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"mobula"
	"mobula/internal/call"
	"mobula/internal/client"
	"mobula/internal/state"
	"mobula/internal/testkit"
	"mobula/mobulatest"
)

// request asks the node as a tool does.
func request[Out any](ctx context.Context, t *testing.T, method string, in any) (out Out) {
	t.Helper()
	if err := call.Request(ctx, client.FromContext(ctx).Client, method, in, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// What is seen of calls is the same, whichever way they go.
func TestCallsAreSeen(t *testing.T) {
	for name, setting := range map[string]string{"by the owner": "0", "straight": "1"} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("MOBULA_STRAIGHT_CALLS", setting)
			seesCalls(t)
		})
	}
}

func seesCalls(t *testing.T) {
	c := mobulatest.Start(t, mobula.WithCPUs(2))
	ctx := c.Context(t.Context())
	dir := t.TempDir()
	a := spawn(ctx, t, 0)
	if err := a.Ready(ctx); err != nil {
		t.Fatal(err)
	}
	calls := func(filters ...mobula.Filter) []mobula.TaskState {
		filters = append(filters, mobula.Filter{Field: "kind", Value: state.KindCall})
		return must(c.ListTasks(ctx, mobula.Query{Filters: filters}))(t).Rows
	}
	job := func() mobula.JobState { return must(c.ListJobs(ctx, mobula.Query{}))(t).Rows[0] }
	was := job()
	runs := tallyHold.Go(ctx, a, mobula.V(dir), mobula.V("r"))
	testkit.Eventually(t, "it runs", exists(filepath.Join(dir, "r.began")))
	var waiting []mobula.Ref[int]
	for range 3 {
		waiting = append(waiting, tallyInc.Go(ctx, a, mobula.V(1)))
	}
	if rows := calls(mobula.Filter{Field: "state", Value: "RUNNING"}); len(rows) != 1 || rows[0].ID+":0" != runs.ID() || rows[0].Actor != a.ID() || rows[0].Attempt != 1 || rows[0].Worker == "" || !strings.HasSuffix(rows[0].Name, "Hold") {
		t.Errorf("those that run are %+v, want %s", rows, runs.ID())
	}
	rows := calls(mobula.Filter{Field: "state", Value: "RUNNING", Not: true})
	if len(rows) != 3 || rows[0].ID+":0" != waiting[2].ID() || rows[2].ID+":0" != waiting[0].ID() {
		t.Errorf("those that wait are %+v", rows)
	}
	for _, r := range rows {
		if r.State != "SUBMITTED_TO_WORKER" && r.State != "PENDING_ACTOR" {
			t.Errorf("one that waits is %+v", r)
		}
	}
	if page := must(c.ListTasks(ctx, mobula.Query{Limit: 2, Filters: []mobula.Filter{{Field: "kind", Value: state.KindCall}}}))(t); page.Total != 4 || len(page.Rows) != 2 || page.Rows[0].ID != rows[0].ID {
		t.Errorf("a page of two: %+v", page)
	}
	if j := job(); j.Tasks["RUNNING"] != 1 || j.Tasks["SUBMITTED_TO_WORKER"]+j.Tasks["PENDING_ACTOR"] != 3 || j.Submitted-was.Submitted != 4 || j.Finished != was.Finished {
		t.Errorf("the job has %+v", j)
	}
	if as := must(c.ListActors(ctx, mobula.Query{}))(t).Rows; len(as) != 1 || as[0].Pending+as[0].Running != 4 {
		t.Errorf("the actor has %+v", as)
	}
	for i, want := range []string{"runs on", "", "", "turn"} {
		id := append([]mobula.Ref[int]{runs}, waiting...)[i].ID()
		x := must(c.Explain(ctx, strings.TrimSuffix(id, ":0")))(t)
		if !strings.Contains(x.Summary, want) || x.Task == nil || x.Task.Actor != a.ID() {
			t.Errorf("call %d: %+v", i, x)
		}
		if x = must(c.Explain(ctx, id))(t); x.State != "PENDING" || x.Next == nil || !strings.Contains(x.Next.Summary, want) {
			t.Errorf("the result of call %d: %+v", i, x)
		}
	}
	if d := request[state.Cancelling](ctx, t, state.MethodCancel, state.CancelRequest{ID: waiting[1].ID()}); d.Ended || d.Was != "SUBMITTED_TO_WORKER" {
		t.Errorf("a cancel gives %+v", d)
	}
	if _, err := waiting[1].Get(ctx); !errors.Is(err, mobula.ErrCancelled) {
		t.Errorf("a call that was cancelled gives %v", err)
	}
	if err := note(filepath.Join(dir, "go"), "x"); err != nil {
		t.Fatal(err)
	}
	must(runs.Get(ctx))(t)
	must(waiting[0].Get(ctx))(t)
	must(waiting[2].Get(ctx))(t)
	j := job()
	if got := fmt.Sprint(j.Submitted-was.Submitted, j.Finished-was.Finished, j.Failed-was.Failed); got != "4 3 0" {
		t.Errorf("counted are %s submitted, finished, failed", got)
	}
	if x := must(c.Explain(ctx, waiting[0].ID()))(t); x.State != "INLINE" {
		t.Errorf("a result that is there: %+v", x)
	}
	if x := must(c.Explain(ctx, strings.TrimSuffix(waiting[0].ID(), ":0")))(t); x.State != "FINISHED" {
		t.Errorf("a call that has ended: %+v", x)
	}
	part := request[state.TimelinePart](ctx, t, state.MethodTimeline, state.TimelineRequest{})
	for _, name := range []string{"tally.Hold", "tally.Inc"} {
		if !strings.Contains(string(part.Body), name) {
			t.Errorf("the timeline has no %s: %s", name, part.Body)
		}
	}
}
