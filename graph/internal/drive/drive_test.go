package drive

import (
	"context"
	"errors"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"mobula/graph"
	"mobula/internal/errs"
	"mobula/internal/testkit"
)

// world is a Runner whose tasks end in any order; it checks what it is told.
type world struct {
	*rapid.T
	g       *graph.Graph
	lim     Limits
	tries   []int // each task fails so often
	running map[int32]bool
	results map[int32]bool
	used    map[string]float64
	failed  map[int32]error
	waits   int
}

func (w *world) Start(_ context.Context, t int32) {
	for _, d := range w.g.Deps(t) {
		if !w.results[d] {
			w.Fatalf("task %d is started, and the result of %d is not there", t, d)
		}
	}
	if w.results[t] || w.running[t] {
		w.Fatalf("task %d is started again", t)
	}
	w.running[t] = true
	for name, n := range w.lim.Need(t) {
		if w.used[name] += n; w.used[name] > w.lim.Have[name] && w.lim.Have[name] > 0 {
			w.Fatalf("%g of %s are taken, there are %g", w.used[name], name, w.lim.Have[name])
		}
	}
	if len(w.running) > w.lim.Tasks {
		w.Fatalf("%d run at once, want %d at most", len(w.running), w.lim.Tasks)
	}
}

func (w *world) Free(t int32) {
	if !w.results[t] {
		w.Fatalf("the result of %d is freed, and is not there", t)
	}
	delete(w.results, t)
}

func (w *world) Wait(context.Context) ([]Ended, error) {
	if len(w.running) == 0 {
		w.Fatalf("nothing runs")
	}
	w.waits++
	var out []Ended
	for _, t := range slices.Sorted(maps.Keys(w.running)) {
		if len(out) > 0 && rapid.Bool().Draw(w.T, "more run on") {
			continue
		}
		e := Ended{Task: t, Again: rapid.IntRange(0, 3).Draw(w.T, "again") > 0}
		if w.tries[t] > 0 {
			w.tries[t]--
			e.Err = errs.New(errs.CodeUser, "task %d", t)
			w.failed[t] = e.Err
		} else {
			w.results[t] = true
		}
		out = append(out, e)
	}
	for _, e := range out {
		delete(w.running, e.Task)
		for name, n := range w.lim.Need(e.Task) {
			w.used[name] -= n
		}
	}
	return out, nil
}

func TestAnyGraphIsDriven(t *testing.T) {
	testkit.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 30).Draw(t, "tasks")
		tasks := make([]graph.Task, n)
		tries := make([]int, n)
		needs := make([]map[string]float64, n)
		for i := range tasks {
			if i > 0 {
				tasks[i].Deps = rapid.SliceOfN(rapid.Int32Range(0, int32(i-1)), 0, 3).Draw(t, "deps")
			}
			tasks[i].Ann = &graph.Annotations{Retries: rapid.IntRange(0, 2).Draw(t, "retries")}
			if rapid.IntRange(0, 9).Draw(t, "fails") == 0 {
				tries[i] = rapid.IntRange(1, 3).Draw(t, "failures")
			}
			needs[i] = map[string]float64{"a": float64(rapid.IntRange(0, 2).Draw(t, "a")), "b": float64(rapid.IntRange(0, 4).Draw(t, "b")) / 4, "c": 9}
		}
		wanted := rapid.SliceOfNDistinct(rapid.Int32Range(0, int32(n-1)), 1, min(n, 3), rapid.ID[int32]).Draw(t, "wanted")
		g, err := graph.New(tasks, nil, wanted)
		if err != nil {
			t.Fatal(err)
		}
		w := &world{
			T: t, g: g, tries: tries, running: make(map[int32]bool), results: make(map[int32]bool), used: make(map[string]float64), failed: make(map[int32]error),
			lim: Limits{Tasks: rapid.IntRange(1, 4).Draw(t, "at once"), Have: map[string]float64{"a": 2, "b": 1}, Need: func(i int32) map[string]float64 { return needs[i] }},
		}
		err = Run(context.Background(), g, w.lim, w)
		if f, ok := errors.AsType[*Failure](err); ok {
			if w.failed[f.Task] == nil || w.failed[f.Task] != f.Err {
				t.Fatalf("%v, and %v failed", f, w.failed)
			}
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		want := make(map[int32]bool)
		for _, t := range wanted {
			want[t] = true
		}
		if !maps.Equal(w.results, want) {
			t.Fatalf("the results of %v are left, %v are wanted", w.results, want)
		}
	})
}

// stub starts nothing.
type stub struct{ err error }

func (stub) Start(context.Context, int32)            {}
func (s stub) Wait(context.Context) ([]Ended, error) { return nil, s.err }
func (stub) Free(int32)                              {}

func TestARunEnds(t *testing.T) {
	g, err := graph.New([]graph.Task{{Key: "a"}}, nil, []int32{0})
	if err != nil {
		t.Fatal(err)
	}
	gone := errors.New("gone")
	if err := Run(t.Context(), g, Limits{}, stub{gone}); err != gone {
		t.Errorf("what Wait says: got %v", err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(gone)
	if err := Run(ctx, g, Limits{}, stub{}); err != gone {
		t.Errorf("the context's cause: got %v", err)
	}
	need := func(int32) map[string]float64 { return map[string]float64{"a": 1.0001} }
	f, ok := errors.AsType[*Failure](Run(t.Context(), g, Limits{Have: map[string]float64{"a": 1}, Need: need}, stub{}))
	if !ok || f.Task != 0 || !errors.Is(f, errs.ErrUnschedulable) {
		t.Errorf("more than there is: got %v", f)
	}
}
