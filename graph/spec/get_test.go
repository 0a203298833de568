package spec

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"mobula/graph"
	"mobula/internal/errs"
)

func inc(x int) int { return x + 1 }

func TestResultsHaveTheNestingOfTheKeys(t *testing.T) {
	g := New()
	a := g.Task(K("a"), inc, 1)
	b := g.Task(K("b"), inc, a)
	l := g.List(K("l"), a, []any{b, 7})
	want := func(want, got any, err error) {
		t.Helper()
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("got %#v, %v, want %#v", got, err, want)
		}
	}
	ctx := t.Context()
	one, err := Get[int](ctx, Sync(), g, b)
	want(3, one, err)
	list, err := Get[[]int](ctx, Sync(), g, []Key{b, a, b})
	want([]int{3, 2, 3}, list, err)
	nested, err := Get[[][]int](ctx, Sync(), g, [][]Key{{a}, {}, {b, a}})
	want([][]int{{2}, {}, {3, 2}}, nested, err)
	loose, err := Get[any](ctx, Sync(), g, []any{a, []Key{b}, l})
	want([]any{2, []any{3}, []any{2, []any{3, 7}}}, loose, err)
	named, err := Get[map[string]int](ctx, Sync(), g, map[string]Key{"x": a, "y": b})
	want(map[string]int{"x": 2, "y": 3}, named, err)
	none, err := Get[[]int](ctx, Sync(), g, []Key{})
	want([]int{}, none, err)
}

func TestArgumentsAreMadeForTheirParameters(t *testing.T) {
	type celsius float64
	type names []string
	got := map[string]any{}
	see := func(name string) func(any) int { return func(x any) int { got[name] = x; return 0 } }
	g := New()
	half := g.Task(K("half"), func() float64 { return 0.5 })
	var keys []Key
	add := func(name string, fn any, args ...any) { keys = append(keys, g.Task(K(name), fn, args...)) }
	add("number", func(x float64) int { got["number"] = x; return 0 }, 3)
	add("kind", func(x celsius) int { got["kind"] = x; return 0 }, 2.5)
	add("list", func(x []float64) int { got["list"] = x; return 0 }, []any{1, half, uint8(2)})
	add("keys", func(x []float64) int { got["keys"] = x; return 0 }, []Key{half})
	add("map", func(x map[string][]float64) int { got["map"] = x; return 0 }, map[string][]any{"a": {half}, "b": nil})
	add("names", func(x names) int { got["names"] = x; return 0 }, []any{"a"})
	add("any", see("any"), []any{1, map[string]any{"k": half}})
	add("data", func(x []int) int { got["data"] = x; return 0 }, g.Data(K("d"), []any{1, 2}))
	add("nil", func(x []int, y any, z *int) int { got["nil"] = x == nil && y == nil && z == nil; return 0 }, nil, nil, nil)
	add("spread", func(x int, xs ...float64) int { got["spread"] = append([]float64{float64(x)}, xs...); return 0 }, 1, half, 2)
	add("none", func(_ context.Context, xs ...float64) (int, error) { got["none"] = len(xs); return 0, nil })
	if _, err := Get[[]int](t.Context(), Sync(), g, keys); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]any{
		"number": 3.0, "kind": celsius(2.5), "list": []float64{1, 0.5, 2}, "keys": []float64{0.5}, "map": map[string][]float64{"a": {0.5}, "b": {}},
		"names": names{"a"}, "any": []any{1, map[string]any{"k": 0.5}}, "data": []int{1, 2}, "nil": true, "spread": []float64{1, 0.5, 2}, "none": 0,
	} {
		if !reflect.DeepEqual(got[name], want) {
			t.Errorf("%s: got %#v, want %#v", name, got[name], want)
		}
	}
}

type tree map[string]tree

type nest []nest

func TestALiteralOfATypeMadeOfItselfIsTakenAsItIs(t *testing.T) {
	g := New()
	keys := []Key{
		g.Task(K("argument"), func(x tree) int { return len(x) }, tree{"a": nil}),
		g.Task(K("data"), func(x nest) int { return len(x) }, g.Data(K("d"), nest{nil, {nil}})),
		g.Task(K("any"), func(x any) int { return len(x.([]map[string]tree)) }, []map[string]tree{{}, nil, {"a": {}}}),
	}
	if got, err := Get[[]int](t.Context(), Sync(), g, keys); err != nil || !slices.Equal(got, []int{1, 2, 3}) {
		t.Errorf("got %v, %v", got, err)
	}
	var invalid *InvalidError
	if _, err := Get[any](t.Context(), Sync(), g, tree{}); !errors.As(err, &invalid) {
		t.Errorf("wanted: %v", err)
	}
}

func TestAResultMayBeNil(t *testing.T) {
	g := New()
	task := g.Task(K("task"), func() any { return nil })
	data := g.Data(K("data"), nil)
	for _, k := range []Key{task, data} {
		if got, err := Get[any](t.Context(), Sync(), g, k); got != nil || err != nil {
			t.Errorf("%v: got %v, %v", k, got, err)
		}
	}
	if got, err := Get[[]any](t.Context(), Sync(), g, []Key{task, data}); err != nil || !slices.Equal(got, []any{nil, nil}) {
		t.Errorf("a list: got %v, %v", got, err)
	}
}

func TestAmountsThatAreNoneAreRefused(t *testing.T) {
	g := New()
	k := g.Task(K("a"), inc, 1)
	for _, n := range []float64{math.Inf(1), math.NaN(), 1e300, -1} {
		_, err := Get[int](t.Context(), Threads(1, Resource("GPU", n)), g, k)
		if !errors.Is(err, errs.ErrInvalid) || !strings.Contains(err.Error(), `resource "GPU": give 0 or more`) {
			t.Errorf("%g: %v", n, err)
		}
	}
	if got, err := Get[int](t.Context(), Threads(math.MaxInt), g, k); got != 2 || err != nil {
		t.Errorf("any number of threads: %v, %v", got, err)
	}
}

func TestKeysInDataAreData(t *testing.T) {
	g := New()
	d := g.Data(K("d"), []Key{K("nothing")})
	if got, err := Get[[]Key](t.Context(), Sync(), g, d); err != nil || !slices.Equal(got, []Key{K("nothing")}) {
		t.Errorf("got %v, %v", got, err)
	}
}

func TestWhatIsWrongIsSaidBeforeAnythingRuns(t *testing.T) {
	ran := false
	run := func(int) int { ran = true; return 0 }
	x := K("x")
	for name, c := range map[string]struct {
		build func(g *Graph)
		want  any
		says  string
	}{
		"a missing key":          {func(g *Graph) { g.Task(x, run, K("y")) }, x, `"x" depends on "y", which is not in the graph`},
		"one behind an alias":    {func(g *Graph) { g.Alias(x, K("y")) }, x, `"x" depends on "y"`},
		"one in a list":          {func(g *Graph) { g.List(x, []any{map[string]any{"k": K("y")}}) }, x, `"x" depends on "y"`},
		"nothing":                {func(*Graph) {}, x, `"x" is wanted and not in the graph`},
		"no key":                 {func(*Graph) {}, []any{"x"}, "x is wanted, and is no key"},
		"nil":                    {func(*Graph) {}, nil, "nil is wanted, and is no key"},
		"a key twice":            {func(g *Graph) { g.Data(x, 1); g.Alias(x, x) }, x, `two tasks have the key "x"`},
		"the zero key":           {func(g *Graph) { g.Data(Key{}, 1) }, x, "the zero Key"},
		"a cycle":                {func(g *Graph) { g.Task(x, run, g.Alias(K("y"), g.List(K("z"), x))) }, x, "a cycle: x -> y -> z -> x"},
		"itself":                 {func(g *Graph) { g.Alias(x, x) }, x, "a cycle: x -> x"},
		"no function":            {func(g *Graph) { g.Task(x, 3) }, x, `"x": int is no function`},
		"a nil function":         {func(g *Graph) { g.Task(x, (func() int)(nil)) }, x, "is no function"},
		"no result":              {func(g *Graph) { g.Task(x, func() {}) }, x, "one result, or one and an error"},
		"two results":            {func(g *Graph) { g.Task(x, func() (int, int) { return 0, 0 }) }, x, "one result, or one and an error"},
		"only an error":          {func(g *Graph) { g.Task(x, func() error { return nil }) }, x, "one result, or one and an error"},
		"too few arguments":      {func(g *Graph) { g.Task(x, run) }, x, `"x": 0 arguments, its function takes 1`},
		"too many arguments":     {func(g *Graph) { g.Task(x, run, 1, 2) }, x, "2 arguments, its function takes 1"},
		"too few of many":        {func(g *Graph) { g.Task(x, func(int, ...int) int { return 0 }) }, x, "0 arguments"},
		"another type":           {func(g *Graph) { g.Task(x, run, "1") }, x, `"x": argument 0: string cannot be a int`},
		"a part of a number":     {func(g *Graph) { g.Task(x, run, 1.5) }, x, "1.5 cannot be a int"},
		"a number too large":     {func(g *Graph) { g.Task(x, func(int8) int { return 0 }, 300) }, x, "300 cannot be a int8"},
		"a negative number":      {func(g *Graph) { g.Task(x, func(uint64) int { return 0 }, -1) }, x, "-1 cannot be a uint64"},
		"a number too exact":     {func(g *Graph) { g.Task(x, func(float32) int { return 0 }, 1<<24+1) }, x, "cannot be a float32"},
		"a huge number":          {func(g *Graph) { g.Task(x, func(float64) int { return 0 }, math.MaxInt64) }, x, "cannot be a float64"},
		"nil for a number":       {func(g *Graph) { g.Task(x, run, nil) }, x, "nil cannot be a int"},
		"a list for a number":    {func(g *Graph) { g.Task(x, run, []any{1}) }, x, "[]interface {} cannot be a int"},
		"another type in a list": {func(g *Graph) { g.Task(x, func([]int) int { return 0 }, []any{1, "2"}) }, x, "argument 0: [1]: string cannot be a int"},
		"another result":         {func(g *Graph) { g.Task(x, run, g.Task(K("y"), fmt.Sprint, 1)) }, x, `argument 0: string, which "y" gives, cannot be a int`},
		"another result wanted":  {func(g *Graph) { g.Task(x, fmt.Sprint, 1) }, x, `string, which "x" gives, cannot be a int`},
		"other data":             {func(g *Graph) { g.Data(x, "s") }, x, `"x": string cannot be a int`},
		"a list wanted as one":   {func(g *Graph) { g.List(x, 1) }, x, "cannot be a int"},
		"a note of nothing":      {func(g *Graph) { g.Annotate(Annotations{}, x) }, x, `"x" is wanted and not in the graph`},
		"a note of data":         {func(g *Graph) { g.Annotate(Annotations{}, g.Data(x, 1)) }, x, "it is no task"},
		"too many retries":       {func(g *Graph) { g.Annotate(Annotations{Retries: 256}, g.Task(x, run, 1)) }, x, "256 retries"},
		"too much of a resource": {func(g *Graph) { g.Annotate(Annotations{Resources: map[string]float64{"r": 1e300}}, g.Task(x, run, 1)) }, x, `1e+300 of resource "r"`},
		"a negative resource":    {func(g *Graph) { g.Annotate(Annotations{Resources: map[string]float64{"r": -1}}, g.Task(x, run, 1)) }, x, `-1 of resource "r"`},
		"a priority too high":    {func(g *Graph) { g.Annotate(Annotations{Priority: 1 << 40}, g.Task(x, run, 1)) }, x, "give one of 32 bits"},
	} {
		t.Run(name, func(t *testing.T) {
			g := New()
			c.build(g)
			if n, err := Get[int](t.Context(), Sync(), g, c.want); err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("got %d, %v, want %s", n, err, c.says)
			}
		})
	}
	if ran {
		t.Error("a task ran")
	}
}

func TestWhatContainsItselfIsRefused(t *testing.T) {
	type ring []ring
	list := []any{1}
	list = append(list, nil, nil)
	list[1], list[2] = list, list
	rings := []any{nil}
	rings[0] = rings
	named := map[string]any{}
	named["a"] = named
	deep := any(1)
	for range 100 {
		deep = []any{deep}
	}
	refused := func(want any, err error) {
		t.Helper()
		if e, ok := errors.AsType[*InvalidError](err); !ok || !strings.HasSuffix(e.Why, "it contains itself") || len(e.Why) > 200 {
			t.Errorf("%v: got %v", want, err)
		}
	}
	g := New()
	take := func(any) int { return 1 }
	for i, arg := range []any{list, named} {
		key := g.Task(Int(i), take, arg)
		_, err := Get[int](t.Context(), Sync(), g, key)
		refused(key, err)
		_, err = Get[any](t.Context(), Sync(), g, arg)
		refused("wanted", err)
	}
	data := g.Data(K("data"), rings)
	_, err := Get[int](t.Context(), Sync(), g, g.Task(K("of data"), func(ring) int { return 1 }, data))
	refused("data of a type made of itself", err)
	if n, err := Get[int](t.Context(), Sync(), g, g.Task(K("deep"), take, deep)); n != 1 || err != nil {
		t.Errorf("a deep one: got %d, %v", n, err)
	}
}

func TestErrorsCanBeToldApart(t *testing.T) {
	g := New()
	x := g.Task(K("x"), inc, K("y"))
	_, err := Get[int](t.Context(), Sync(), g, x)
	if e, ok := errors.AsType[*graph.MissingError](err); !ok || e.Key != "y" || e.By != "x" {
		t.Errorf("missing: %v", err)
	}
	g.Alias(K("y"), x)
	_, err = Get[int](t.Context(), Sync(), g, x)
	if e, ok := errors.AsType[*graph.CycleError](err); !ok || !slices.Equal(e.Path, []string{"x", "y", "x"}) {
		t.Errorf("cycle: %v", err)
	}
	g.Data(x, 1)
	g.Task(K("z"), 1)
	_, err = Get[int](t.Context(), Sync(), g, x)
	if e, ok := errors.AsType[*graph.DuplicateError](err); !ok || e.Key != "x" {
		t.Errorf("duplicate: %v", err)
	}
	if e, ok := errors.AsType[*InvalidError](err); !ok || e.Key != K("z") || !errors.Is(err, errs.ErrInvalid) {
		t.Errorf("invalid: %v", err)
	}
}

// A chain as long as this one is walked, ordered and run without recursion.
func TestALongChain(t *testing.T) {
	g := New()
	at := g.Data(Int(0), 0)
	for i := range 50_000 {
		at = g.Task(Int(i+1), inc, at)
	}
	if n, err := Get[int](t.Context(), Sync(), g, at); n != 50_000 || err != nil {
		t.Errorf("got %d, %v", n, err)
	}
	last := at
	for i := range 50_000 {
		last = g.Alias(K("alias", i), last)
	}
	if n, err := Get[int](t.Context(), Threads(1), g, last); n != 50_000 || err != nil {
		t.Errorf("behind aliases: got %d, %v", n, err)
	}
}

func TestOnlyWhatIsNeededRuns(t *testing.T) {
	g := New()
	g.Task(K("beside"), func() (int, error) { return 0, io.ErrUnexpectedEOF })
	if n, err := Get[int](t.Context(), Sync(), g, g.Task(K("x"), inc, 1)); n != 2 || err != nil {
		t.Errorf("got %d, %v", n, err)
	}
}
