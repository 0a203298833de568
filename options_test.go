package mobula

import (
	"context"
	"errors"
	"reflect"
	"strings"
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
	there := get(Labels{"x": "1", "y": "2"}, OnNode("1"))
	if there != get(OnNode("1"), Labels{"y": "2", "x": "1"}) {
		t.Error("the same labels and node are another pointer")
	}
	for _, o := range [][]TaskOption{{Labels{"x": "1", "y": "2"}}, {Labels{"x": "1", "y": "3"}, OnNode("1")}, {Labels{"x": "1", "y": "2"}, PreferNode("1")},
		{Labels{"x": "1", "y": "2"}, OnNode("0")}, {PreferLabels{"x": "1", "y": "2"}, OnNode("1")}} {
		if get(o...) == there {
			t.Errorf("%v is the same pointer as another node or other labels", o)
		}
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
	for d, want := range map[PanicDirective]wire.OnPanic{PanicRestart: wire.PanicRestarts, PanicResume: wire.PanicResumes, PanicStop: wire.PanicStops, PanicEscalate: wire.PanicEscalates} {
		if o, _, err := resolve(ctx, counters.fn, []ActorOption{OnPanic(d)}); err != nil || o.OnPanic != want {
			t.Errorf("directive %d: %+v, %v, want %d", d, o, err, want)
		}
	}
	for _, c := range []struct {
		r    Resources
		want []wire.Resource
	}{
		{Resources{}, nil},
		{Resources{CPU: NoCPU}, []wire.Resource{{Name: "CPU"}}},
		{Resources{CPU: NoCPU, GPU: 1}, []wire.Resource{{Name: "CPU"}, {Name: "GPU", Amount: 1000}}},
		{Resources{GPU: .5}, []wire.Resource{{Name: "CPU", Amount: 1000}, {Name: "GPU", Amount: 500}}},
	} {
		o, _, err := resolve(ctx, add.fn, []TaskOption{c.r})
		if err != nil || !reflect.DeepEqual(o.Resources, c.want) {
			t.Errorf("%+v: %#v, %v, want %#v", c.r, o.Resources, err, c.want)
		}
	}
}

func TestOptionsSayWhichNode(t *testing.T) {
	o, _, err := resolve(t.Context(), optioned.fn, []TaskOption{
		Labels{"zone": "in(b, a,b)", "spot": "!true", "example.com/rack": "3", "ssd": " exists() ", "gpu": "!exists()", "os": "! in( x )"}, PreferLabels{"zone": "a"}, PreferNode("7")})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := wire.Selector(o.Labels).String(),
		"example.com/rack in (3) and gpu is absent and os not in (x) and spot not in (true) and ssd exists and zone in (a, b)"; got != want {
		t.Errorf("labels: %s\nwant: %s", got, want)
	}
	if got := wire.Selector(o.PreferLabels).String(); got != "zone in (a)" || o.Affinity != wire.AffinitySoft || o.Node != 7 {
		t.Errorf("prefers %q, affinity %v to %v", got, o.Affinity, o.Node)
	}
	a, _, err := resolve(t.Context(), counters.fn, []ActorOption{OnNode("0"), Labels{"zone": "a"}, Labels{}})
	if err != nil || a.Affinity != wire.AffinityHard || a.Node != 0 || a.Labels != nil {
		t.Errorf("%+v, %v: want node 0, and the last Labels", a, err)
	}
}

// Who writes a condition that cannot be meant is told what is wrong and what to write.
func TestMalformedLabelsAreRefused(t *testing.T) {
	for _, c := range []struct {
		opts []TaskOption
		want []string
	}{
		{[]TaskOption{Labels{"zone": ""}}, []string{"Labels", `label "zone"`, `the value ""`, `want "a", "!a", "in(a, b)"`}},
		{[]TaskOption{Labels{"zone": "in(a"}}, []string{`"in(a" of label "zone" is no condition`, `"!in(a, b)"`}},
		{[]TaskOption{Labels{"zone": "in()"}}, []string{`"in()" of label "zone"`, `the value ""`}},
		{[]TaskOption{Labels{"zone": "in(a,,b)"}}, []string{`the value ""`}},
		{[]TaskOption{Labels{"zone": "in(a) "}, Labels{"zone": "in(a)b"}}, []string{"no condition"}},
		{[]TaskOption{Labels{"zone": "near(a)"}}, []string{"no condition", `"exists()"`}},
		{[]TaskOption{Labels{"zone": "!!a"}}, []string{`the value "!a"`}},
		{[]TaskOption{Labels{"zone": "exists(a)"}}, []string{"exists takes no values"}},
		{[]TaskOption{Labels{"a b": "a"}}, []string{`"a b" is no name`}},
		{[]TaskOption{Labels{"": "a"}}, []string{`label ""`}},
		{[]TaskOption{PreferLabels{"zone": "a/b"}}, []string{"PreferLabels", `the value "a/b"`}},
		{[]TaskOption{OnNode("")}, []string{`"" is no node's id`, "mobula list nodes"}},
		{[]TaskOption{OnNode("host-17")}, []string{`"host-17"`, "want a number"}},
		{[]TaskOption{PreferNode("134217728")}, []string{`"134217728"`}},
		{[]TaskOption{OnNode("-1")}, []string{`"-1"`}},
		{[]TaskOption{Spread(), OnNode("1")}, []string{"Spread", "give one of them"}},
		{[]TaskOption{PreferNode("1"), Spread()}, []string{"Spread", "give one of them"}},
	} {
		_, _, err := resolve(t.Context(), optioned.fn, c.opts)
		if !errors.Is(err, ErrInvalid) {
			t.Errorf("%v: %v, want ErrInvalid", c.opts, err)
			continue
		}
		for _, want := range c.want {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%v: %v\ndoes not say %q", c.opts, err, want)
			}
		}
	}
}

func TestBadOptions(t *testing.T) {
	ctx := t.Context()
	for _, opts := range [][]ActorOption{{Detached()}, {GetIfExists()}, {Named("ns", "")}, {Named("ns", "\xff")}, {Named("\xff", "n")}, {MaxConcurrency(0)}, {ConcurrencyGroup("g", 0)}, {nil}, {OnPanic(9)},
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
