package mobula

import (
	"context"
	"errors"
	"reflect"
	"testing"
	"time"

	"mobula/internal/call"
	"mobula/wire"
)

var optioned = Register0("test/optioned", func(context.Context) (int, error) { return 1, nil }, Retries(5), Label("by default"))

// resolve gives the options that a call with opts is sent with, and its deadline.
func resolve[O any](ctx context.Context, f *call.Function, opts []O) (*wire.TaskOptions, time.Time, error) {
	if len(opts) == 0 {
		return f.Resolve(ctx, nil)
	}
	o := options(f.Options(), opts)
	return f.Resolve(ctx, &o)
}

func TestSameOptionsAreTheSamePointer(t *testing.T) {
	ctx := t.Context()
	f := add.fn
	get := func(opts ...TaskOption) *wire.TaskOptions {
		o, _, err := resolve(ctx, f, opts)
		if err != nil {
			t.Fatal(err)
		}
		return o
	}
	plain := get()
	if get() != plain || get(Retries(3)) != plain {
		t.Error("the defaults, said or not, are not the prebuilt options")
	}
	a := get(Resources{CPU: .5, Custom: map[string]float64{"x": 1, "y": 2}}, Retries(0), Spread())
	b := get(Spread(), Retries(0), Resources{Custom: map[string]float64{"y": 2, "x": 1}, CPU: .5})
	if a != b {
		t.Error("the same options in another order are another pointer")
	}
	if a == get(Retries(0), Spread()) {
		t.Error("other options are the same pointer")
	}
}

func TestOptionsSayWhatTheyShould(t *testing.T) {
	ctx := t.Context()
	o, _, err := resolve(ctx, optioned.fn, []TaskOption{Resources{CPU: .5, GPU: 1, Memory: 1 << 20, Custom: map[string]float64{"tpu": .0001}}, RetryExceptions(), Isolated(), Spread()})
	want := &wire.TaskOptions{Func: "test/optioned", NumReturns: 1, MaxRetries: 5, RetryExceptions: true, Isolate: true, Spread: true, Label: "by default", MaxConcurrency: 1, MaxPendingCalls: -1,
		Resources: []wire.Resource{{Name: "CPU", Amount: 500}, {Name: "GPU", Amount: 1000}, {Name: "memory", Amount: 1 << 20}, {Name: "tpu", Amount: 1}}}
	if err != nil || !reflect.DeepEqual(o, want) {
		t.Errorf("task: %+v, %v, want %+v", o, err, want)
	}
	a, _, err := resolve(ctx, counters.fn, []ActorOption{MaxRestarts(-1), MaxTaskRetries(2), MaxConcurrency(4), MaxPendingCalls(9), Named("ns", "n"), Detached(), GetIfExists(), ConcurrencyGroup("io", 2), ConcurrencyGroup("cpu", 1), Resources{GPU: 1}})
	wantA := &wire.TaskOptions{Func: "test/counter", NumReturns: 1, MaxRetries: 3, MaxRestarts: -1, MaxTaskRetries: 2, MaxConcurrency: 4, MaxPendingCalls: 9, Namespace: "ns", ActorName: "n", Detached: true, GetIfExists: true,
		Groups: []wire.ConcurrencyGroup{{Name: "io", Max: 2}, {Name: "cpu", Max: 1}}, Resources: []wire.Resource{{Name: "GPU", Amount: 1000}}}
	if err != nil || !reflect.DeepEqual(a, wantA) {
		t.Errorf("actor: %+v, %v, want %+v", a, err, wantA)
	}
	for _, c := range []struct {
		r    Resources
		want []wire.Resource
	}{
		{Resources{}, nil},
		{Resources{CPU: NoCPU}, []wire.Resource{}},
		{Resources{GPU: .5}, []wire.Resource{{Name: "CPU", Amount: 1000}, {Name: "GPU", Amount: 500}}},
	} {
		o, _, err := resolve(ctx, add.fn, []TaskOption{c.r})
		if err != nil || !reflect.DeepEqual(o.Resources, c.want) {
			t.Errorf("%+v: %#v, %v, want %#v", c.r, o.Resources, err, c.want)
		}
	}
}

func TestBadOptions(t *testing.T) {
	ctx := t.Context()
	for _, opts := range [][]ActorOption{{Detached()}, {GetIfExists()}, {Named("ns", "")}, {MaxConcurrency(0)}, {ConcurrencyGroup("g", 0)}, {nil},
		{Resources{GPU: -1}}, {Resources{Custom: map[string]float64{"CPU": 1}}}, {Resources{Custom: map[string]float64{"x": -1}}}} {
		if _, _, err := resolve(ctx, counters.fn, opts); !errors.Is(err, ErrInvalid) {
			t.Errorf("%+v: %v, want ErrInvalid", opts, err)
		}
	}
}

func TestTheEarlierDeadlineHolds(t *testing.T) {
	at := time.Now().Add(time.Hour)
	ctx, cancel := context.WithDeadline(t.Context(), at)
	defer cancel()
	for _, c := range []struct {
		opts []TaskOption
		want time.Time
	}{
		{nil, at},
		{[]TaskOption{Deadline(at.Add(time.Minute))}, at},
		{[]TaskOption{Deadline(at.Add(-time.Minute))}, at.Add(-time.Minute)},
	} {
		if _, got, err := resolve(ctx, add.fn, c.opts); err != nil || !got.Equal(c.want) {
			t.Errorf("%v: %v, %v, want %v", c.opts, got, err, c.want)
		}
	}
	plain, _, _ := resolve[TaskOption](ctx, add.fn, nil)
	if _, got, err := resolve(ctx, add.fn, []TaskOption{Timeout(time.Minute)}); err != nil || time.Until(got) > time.Minute || got.IsZero() {
		t.Errorf("timeout: %v, %v", got, err)
	}
	if o, _, err := resolve(ctx, add.fn, []TaskOption{Timeout(time.Minute)}); err != nil || o != plain {
		t.Errorf("a deadline made a class of its own: %+v, %v", o, err)
	}
}
