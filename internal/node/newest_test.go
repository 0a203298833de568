package node

import (
	"context"
	"slices"
	"testing"

	"mobula/internal/client"
	"mobula/internal/state"
	"mobula/wire"
)

// Lists of what is made in the course of time begin with the newest, and go on so over pages, whatever happens to the rows meanwhile.
func TestTheNewestIsListedFirst(t *testing.T) {
	open := shut(t)
	n, c := running(t, Config{CPUs: 2}, Telemetry{})
	other, err := n.Attach(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := other.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	var want []string // of two jobs, in turn
	for i := range 20 {
		of := []*client.Client{c, other}[i%2]
		h := submit(t, of, waiting)
		// The node has it before the next is sent: what two drivers send is in no order.
		until(t, c, state.MethodTasks, state.Query{}, func(p state.Page[state.Task]) bool { return p.Total == i+1 })
		want = append(want, h.ID().Task.String())
	}
	slices.Reverse(want)
	var got []string
	last := int64(0)
	for q := (state.Query{Limit: 7}); ; {
		p := must[state.Page[state.Task]](t, c, state.MethodTasks, q)
		for _, r := range p.Rows {
			got = append(got, r.ID)
			if last != 0 && r.Submitted > last || r.Submitted == 0 {
				t.Errorf("task %s was submitted at %d, the row before at %d", r.ID, r.Submitted, last)
			}
			last = r.Submitted
		}
		if q.Cursor = p.Next; !p.Truncated {
			break
		}
		if len(got) == 7 {
			open() // the others end: their place stays
			until(t, c, state.MethodStatus, nil, func(s state.Status) bool { return s.Tasks["FINISHED"] == 20 })
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("tasks are listed as\n%v, submitted last first were\n%v", got, want)
	}

	want = nil
	for i := range 5 {
		h := submit2(t, c, wire.TaskActorCreate, &wire.TaskOptions{Func: "state/actor", NumReturns: 1})
		want = append([]string{h.ID().Task.String()}, want...)
		until(t, c, state.MethodActors, state.Query{}, func(p state.Page[state.Actor]) bool { return p.Total == i+1 })
	}
	got = nil
	for q := (state.Query{Limit: 2}); ; {
		p := must[state.Page[state.Actor]](t, c, state.MethodActors, q)
		for _, r := range p.Rows {
			got = append(got, r.ID)
		}
		if q.Cursor = p.Next; !p.Truncated {
			break
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("actors are listed as\n%v, made last first were\n%v", got, want)
	}
	if js := must[state.Page[state.Job]](t, c, state.MethodJobs, state.Query{}); len(js.Rows) != 2 || js.Rows[0].ID != "2" {
		t.Errorf("jobs are listed as %+v", js.Rows)
	}
}
