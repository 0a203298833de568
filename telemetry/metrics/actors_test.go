package metrics

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"

	"mobula/raylet/owner"
	"mobula/raylet/owner/task"
	"mobula/wire"
)

func call(fn string, st task.State, took time.Duration, tc wire.TraceContext) owner.Transition {
	return owner.Transition{Spec: &wire.TaskSpec{Kind: wire.TaskActorCall, Opts: &wire.TaskOptions{Func: fn}, Trace: tc}, State: st, Took: took}
}

func find(t *testing.T, m *Set, name, class string) *dto.Metric {
	t.Helper()
	fs, err := m.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range fs {
		for _, x := range f.Metric {
			if f.GetName() == name && len(x.Label) == 1 && x.Label[0].GetValue() == class {
				return x
			}
		}
	}
	t.Fatalf("no %s of %s", name, class)
	return nil
}

func TestActorsByClass(t *testing.T) {
	m := New(func(context.Context) Snapshot {
		return Snapshot{AliveBy: map[string]int{"app/counter": 3}, PendingBy: map[string]int{"app/counter": 7}}
	})
	made := func(restart bool) owner.Transition {
		return owner.Transition{Spec: &wire.TaskSpec{Kind: wire.TaskActorCreate, Opts: &wire.TaskOptions{Func: "app/counter"}}, State: task.Backoff, Restart: restart}
	}
	m.Actors.Record([]owner.Transition{
		made(false), made(true), made(true),
		call("app/counter.Inc", task.Submitted, 0, wire.TraceContext{}),
		call("app/counter.Inc", task.Finished, 2*time.Millisecond, wire.TraceContext{}),
		call("app/counter.Get", task.Failed, 2*time.Second, wire.TraceContext{TraceID: [16]byte{0xab}, Flags: 1}),
		call("app/counter.Get", task.Cancelled, time.Hour, wire.TraceContext{}),
		call("functions:Store.put:0123", task.Finished, time.Millisecond, wire.TraceContext{}),
		{Spec: &wire.TaskSpec{Opts: &wire.TaskOptions{Func: "app/plain"}}, State: task.Finished},
	})
	if v := find(t, m, "mobula_actor_restarts_total", "app/counter").Counter.GetValue(); v != 2 {
		t.Errorf("%v restarts", v)
	}
	h := find(t, m, "mobula_actor_call_seconds", "app/counter").Histogram
	if h.GetSampleCount() != 2 || h.GetSampleSum() != 2.002 {
		t.Errorf("calls %v", h)
	}
	exemplars := 0
	for _, b := range h.Bucket {
		if e := b.Exemplar; e != nil {
			if exemplars++; e.Label[0].GetValue() != "ab"+strings.Repeat("0", 30) || e.GetValue() != 2 {
				t.Errorf("an exemplar %v", e)
			}
		}
	}
	if exemplars != 1 {
		t.Errorf("%d exemplars", exemplars)
	}
	if h := find(t, m, "mobula_actor_call_seconds", "Store").Histogram; h.GetSampleCount() != 1 {
		t.Errorf("calls of a Python class: %v", h)
	}
	if a, p := find(t, m, "mobula_actors_alive", "app/counter"), find(t, m, "mobula_actor_pending_calls", "app/counter"); a.Gauge.GetValue() != 3 || p.Gauge.GetValue() != 7 {
		t.Errorf("alive %v, pending %v", a, p)
	}
}

// Calls that are known by their number only are counted, and have no time.
func TestCallsAreCounted(t *testing.T) {
	m := New(func(context.Context) Snapshot { return Snapshot{} })
	many, untimed := call("app/counter.Inc", task.Finished, 0, wire.TraceContext{}), call("app/counter.Inc", task.Failed, -1, wire.TraceContext{})
	many.Count = 1000
	m.Actors.Record([]owner.Transition{
		many, untimed,
		call("app/counter.Get", task.Finished, time.Second, wire.TraceContext{}),
		call("app/counter.Get", task.Running, 0, wire.TraceContext{}),
		call("app/counter.Get", task.Cancelled, time.Second, wire.TraceContext{}),
	})
	got := map[string]float64{}
	fs, err := m.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range fs {
		for _, x := range f.Metric {
			if f.GetName() == "mobula_actor_calls_total" && x.Label[0].GetValue() == "app/counter" {
				got[x.Label[1].GetValue()] = x.Counter.GetValue()
			}
		}
	}
	if len(got) != 3 || got["FINISHED"] != 1001 || got["FAILED"] != 1 || got["CANCELLED"] != 1 {
		t.Errorf("calls %v", got)
	}
	if h := find(t, m, "mobula_actor_call_seconds", "app/counter").Histogram; h.GetSampleCount() != 1 {
		t.Errorf("times %v", h)
	}
}

func TestClassesAreBounded(t *testing.T) {
	count := func(n int) int {
		m := New(func(context.Context) Snapshot { return Snapshot{} })
		for i := range n {
			m.Actors.Record([]owner.Transition{call(fmt.Sprintf("c%d.m%d", i, i), task.Finished, time.Second, wire.TraceContext{})})
		}
		if n > maxClasses {
			if h := find(t, m, "mobula_actor_call_seconds", other).Histogram; h.GetSampleCount() != uint64(n-maxClasses) {
				t.Errorf("%d calls of further classes, want %d", h.GetSampleCount(), n-maxClasses)
			}
			if got := m.Actors.Class(&wire.TaskOptions{Func: "late"}); got != other {
				t.Errorf("a further class is %q", got)
			}
		}
		return series(t, m)
	}
	if a, b := count(100), count(maxMethods+100); a != b {
		t.Errorf("%d series for 100 classes, %d for more", a, b)
	}
}

func TestNamesOfFunctions(t *testing.T) {
	for fn, want := range map[string]string{
		"app/counter": "app/counter", "py:m.f": "py:m.f", "py:m.f:00ff": "m.f", "py:m.f:00ff+": "m.f", "py:m.<partial>:a:b:00ff": "m.<partial>:a:b",
	} {
		if got := nameOf(&wire.TaskOptions{Func: fn}); got != want {
			t.Errorf("%q is called %q, want %q", fn, got, want)
		}
	}
}
