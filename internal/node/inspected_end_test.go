package node

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"mobula/internal/client"
	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/internal/state"
	"mobula/wire"
)

// A task is cancelled from outside as its own program would: what waits never runs, what runs is told, and what is not known is refused.
func TestTasksAreCancelledByRequest(t *testing.T) {
	shut(t)
	n, c := running(t, Config{CPUs: 1}, Telemetry{})
	other, err := n.Attach(t.Context(), "") // has none of these tasks
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := other.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}()
	first, second := submit(t, c, waiting), submit(t, c, waiting)
	until(t, c, state.MethodTasks, state.Query{Filters: []state.Filter{{Field: "state", Value: "RUNNING"}}}, func(p state.Page[state.Task]) bool { return p.Total == 1 })
	for _, h := range []*client.Handle{second, first} {
		ran := h == first
		r := must[state.Cancelling](t, other, state.MethodCancel, state.CancelRequest{ID: h.ID().String()})
		if r.Task != h.ID().Task.String() || r.Name != "waiter" || r.Ended || (r.Was == "RUNNING") != ran || !ran && r.State != "CANCELLED" {
			t.Errorf("the answer is %+v", r)
		}
		if _, err := c.Get(t.Context(), h); !errors.Is(err, errs.ErrCancelled) {
			t.Errorf("%s fails with %v", r.Task, err)
		}
	}
	if r := must[state.Cancelling](t, other, state.MethodCancel, state.CancelRequest{ID: first.ID().Task.String(), Recursive: true}); !r.Ended || r.State != "CANCELLED" {
		t.Errorf("a task that was cancelled before: %+v", r)
	}
	unknown := ids.Derive(c.Root().Task, 99)
	for id, want := range map[string]error{
		unknown.String(): errs.ErrNotFound, ids.RootTask(77, 1).String(): errs.ErrNotFound, "": errs.ErrInvalid, "add": errs.ErrInvalid, c.Root().Task.Put(1).String(): errs.ErrInvalid,
	} {
		if _, err := ask[state.Cancelling](t, c, state.MethodCancel, state.CancelRequest{ID: id}); !errors.Is(err, want) || !strings.Contains(err.Error(), id) {
			t.Errorf("cancel %q: %v", id, err)
		}
	}
}

// An actor is killed from outside, by its id or its name, to restart or for good.
func TestActorsAreKilledByRequest(t *testing.T) {
	cfg := Config{CPUs: 2, Dir: filepath.Join(t.TempDir(), "n"), StoreBytes: 64 << 20, Namespace: "prod"}
	n, err := Start(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	c, err := n.Attach(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := errors.Join(c.Close(t.Context()), n.Close(t.Context())); err != nil {
			t.Error(err)
		}
	}()
	h := submit2(t, c, wire.TaskActorCreate, &wire.TaskOptions{Func: "state/actor", NumReturns: 1, ActorName: "hits", Namespace: "prod", MaxRestarts: 1})
	if _, err := c.Get(t.Context(), h); err != nil {
		t.Fatal(err)
	}
	id := h.ID().Task.String()
	if _, err := ask[state.Cancelling](t, c, state.MethodCancel, state.CancelRequest{ID: id}); !errors.Is(err, errs.ErrInvalid) || !strings.Contains(err.Error(), id) {
		t.Errorf("cancel of an actor that lives: %v", err)
	}
	k := must[state.Killed](t, c, state.MethodKill, state.KillRequest{Actor: "hits", Restart: true})
	if k.Actor != id || k.Type != "state/actor" || k.Name != "hits" || k.Was != "ALIVE" || k.State != "RESTARTING" {
		t.Errorf("killed to restart: %+v", k)
	}
	until(t, c, state.MethodActors, state.Query{}, func(p state.Page[state.Actor]) bool { return p.Rows[0].State == "ALIVE" && p.Rows[0].Restarts == 1 })
	if k = must[state.Killed](t, c, state.MethodKill, state.KillRequest{Actor: id}); k.Was != "ALIVE" || k.State != "DEAD" {
		t.Errorf("killed: %+v", k)
	}
	for _, r := range []state.KillRequest{{Actor: "nobody"}, {Actor: "hits", Namespace: "test"}, {Actor: ids.RootTask(77, 1).String()}, {Actor: ids.Derive(c.Root().Task, 99).String()}} {
		if _, err := ask[state.Killed](t, c, state.MethodKill, r); !errors.Is(err, errs.ErrNotFound) || !strings.Contains(err.Error(), r.Actor) {
			t.Errorf("kill %+v: %v", r, err)
		}
	}
	if _, err := ask[state.Killed](t, c, state.MethodKill, state.KillRequest{}); !errors.Is(err, errs.ErrInvalid) {
		t.Errorf("kill of nothing: %v", err)
	}
}

// A program may drop its counters of calls to actors that have ended, or that its job's owner does not know: the node says which these are.
func TestUncountedByRequest(t *testing.T) {
	shut(t)
	_, c := running(t, Config{CPUs: 2}, Telemetry{})
	create := func() *client.Handle {
		h := submit2(t, c, wire.TaskActorCreate, &wire.TaskOptions{Func: "state/actor", NumReturns: 1})
		if _, err := c.Get(t.Context(), h); err != nil {
			t.Fatal(err)
		}
		return h
	}
	lives, dies := create(), create()
	defer lives.Release()
	defer dies.Release()
	must[state.Killed](t, c, state.MethodKill, state.KillRequest{Actor: dies.ID().Task.String()})
	r := state.UncountedRequest{Job: uint64(c.Root().Base().Job())}
	for _, id := range []ids.TaskID{lives.ID().Task, dies.ID().Task, ids.Derive(c.Root().Task, 99), ids.RootTask(77, 1)} {
		r.Actors = append(r.Actors, id.Bytes())
	}
	if un := must[state.Uncounted](t, c, state.MethodUncounted, r); !slices.Equal(un.Actors, []int{1, 2, 3}) {
		t.Errorf("uncounted are %v", un.Actors)
	}
	for _, bad := range []state.UncountedRequest{{Job: r.Job, Actors: [][]byte{nil}}, {Job: r.Job, Actors: make([][]byte, state.MaxUncounted+1)}} {
		if _, err := ask[state.Uncounted](t, c, state.MethodUncounted, bad); !errors.Is(err, errs.ErrInvalid) {
			t.Errorf("%d actors: %v", len(bad.Actors), err)
		}
	}
	if _, err := ask[state.Uncounted](t, c, state.MethodUncounted, state.UncountedRequest{Job: 77}); !errors.Is(err, errs.ErrNotFound) {
		t.Errorf("of a job that is not known: %v", err)
	}
}
