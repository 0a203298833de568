package ship_test

import (
	"context"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"mobula"
	"mobula/graph/spec"
	"mobula/internal/testkit"
	"mobula/mobulatest"
)

// What random graphs are made of.
var (
	sum = mobula.Register1("ship/sum", func(_ context.Context, xs []int) (int, error) {
		n := 0
		for _, x := range xs {
			n += x
		}
		return n, nil
	})
	weigh = mobula.Register1("ship/weigh", func(_ context.Context, m map[string]int) (int, error) {
		n := 0
		for name, x := range m {
			n += len(name) * x
		}
		return n, nil
	})
	show   = mobula.Register1("ship/show", func(_ context.Context, x any) (string, error) { return fmt.Sprint(x), nil })
	length = mobula.Register1("ship/length", func(_ context.Context, s string) (int, error) { return len(s), nil })
	ramp   = mobula.Register1("ship/ramp", func(_ context.Context, n int) ([]float64, error) {
		out := make([]float64, 100*(n&0xff))
		for i := range out {
			out[i] = float64(i)
		}
		return out, nil
	})
	total = mobula.Register2("ship/total", func(_ context.Context, xs []float64, scale float64) (int, error) {
		n := 0.0
		for _, x := range xs {
			n += scale * x
		}
		return int(n), nil
	})
)

// drawn is a node of a random graph, and what it gives by plain recursion.
type drawn struct {
	key  spec.Key
	typ  reflect.Type
	add  func(g *spec.Graph)
	eval func() any
}

// input is an argument of a type, and what it is.
type input struct {
	arg  any
	eval func() any
}

type drawer struct {
	*rapid.T
	nodes []drawn
}

var (
	intType    = reflect.TypeFor[int]()
	intsType   = reflect.TypeFor[[]int]()
	stringType = reflect.TypeFor[string]()
	floatsType = reflect.TypeFor[[]float64]()
)

// draw makes a graph whose nodes are added in any order.
func draw(t *rapid.T, most int) []drawn {
	d := &drawer{T: t}
	for range rapid.IntRange(1, most).Draw(t, "nodes") {
		d.node()
	}
	return d.nodes
}

func (d *drawer) key() spec.Key {
	n := len(d.nodes)
	switch rapid.IntRange(0, 3).Draw(d.T, "key") {
	case 0:
		return spec.Int(n)
	case 1:
		return spec.K(fmt.Sprint(n))
	case 2:
		return spec.K("part", n%3, n)
	}
	return spec.Tuple(spec.K("it's"), spec.Tuple(spec.Int(n)))
}

func (d *drawer) node() {
	n := drawn{key: d.key()}
	task := func(fn any, out reflect.Type, call func(in []any) any, args ...input) {
		n.typ = out
		list := make([]any, len(args))
		for i, a := range args {
			list[i] = a.arg
		}
		n.add = func(g *spec.Graph) { g.Task(n.key, fn, list...) }
		n.eval = func() any {
			in := make([]any, len(args))
			for i, a := range args {
				in[i] = a.eval()
			}
			return call(in)
		}
	}
	switch rapid.IntRange(0, 10).Draw(d.T, "kind") {
	case 0:
		v := rapid.IntRange(-9, 9).Draw(d.T, "value")
		n.typ, n.eval, n.add = intType, func() any { return v }, func(g *spec.Graph) { g.Data(n.key, v) }
	case 1:
		v := rapid.SliceOfN(rapid.IntRange(-9, 9), 0, 300).Draw(d.T, "values")
		n.typ, n.eval, n.add = intsType, func() any { return v }, func(g *spec.Graph) { g.Data(n.key, v) }
	case 2:
		if len(d.nodes) > 0 {
			of := rapid.SampledFrom(d.nodes).Draw(d.T, "alias of")
			n.typ, n.eval, n.add = of.typ, of.eval, func(g *spec.Graph) { g.Alias(n.key, of.key) }
			break
		}
		fallthrough
	case 3:
		x := d.ints()
		elems, _ := x.arg.([]any)
		n.typ, n.eval, n.add = intsType, func() any { return x.eval() }, func(g *spec.Graph) { g.List(n.key, elems...) }
	case 4:
		task(sum, intType, func(in []any) any {
			n := 0
			for _, x := range in[0].([]int) {
				n += x
			}
			return n
		}, d.of(intsType))
	case 5:
		task(weigh, intType, func(in []any) any {
			n := 0
			for name, x := range in[0].(map[string]int) {
				n += len(name) * x
			}
			return n
		}, d.mapping())
	case 6:
		task(show, stringType, func(in []any) any { return fmt.Sprint(in[0]) }, d.anything(2))
	case 7:
		task(length, intType, func(in []any) any { return len(in[0].(string)) }, d.of(stringType))
	case 8:
		task(ramp, floatsType, func(in []any) any {
			out := make([]float64, 100*(in[0].(int)&0xff))
			for i := range out {
				out[i] = float64(i)
			}
			return out
		}, d.of(intType))
	case 9:
		task(total, intType, func(in []any) any {
			n := 0.0
			for _, x := range in[0].([]float64) {
				n += 2 * x
			}
			return int(n)
		}, d.of(floatsType), input{2, func() any { return 2 }})
	default:
		task(add, intType, func(in []any) any { return in[0].(int) + in[1].(int) }, d.of(intType), d.of(intType))
	}
	d.nodes = append(d.nodes, n)
}

// of is a literal, or a node that is there, of a type.
func (d *drawer) of(t reflect.Type) input {
	var fit []drawn
	for _, n := range d.nodes {
		if n.typ == t {
			fit = append(fit, n)
		}
	}
	if len(fit) > 0 && rapid.IntRange(0, 4).Draw(d.T, "literal") > 0 {
		n := rapid.SampledFrom(fit).Draw(d.T, "from")
		return input{n.key, n.eval}
	}
	switch t {
	case intType:
		v := rapid.IntRange(-9, 9).Draw(d.T, "int")
		return input{v, func() any { return v }}
	case stringType:
		v := strings.Repeat("ab", rapid.IntRange(0, 800).Draw(d.T, "length"))
		return input{v, func() any { return v }}
	case floatsType:
		return input{[]float64{1, 2}, func() any { return []float64{1, 2} }}
	}
	return d.ints()
}

// ints is a list of numbers and nodes.
func (d *drawer) ints() input {
	elems := make([]input, rapid.IntRange(0, 4).Draw(d.T, "elements"))
	list := make([]any, len(elems))
	for i := range elems {
		elems[i] = d.of(intType)
		list[i] = elems[i].arg
	}
	return input{list, func() any {
		out := make([]int, len(elems))
		for i, e := range elems {
			out[i] = e.eval().(int)
		}
		return out
	}}
}

func (d *drawer) mapping() input {
	elems := make(map[string]input)
	arg := make(map[string]any)
	for i := range rapid.IntRange(0, 4).Draw(d.T, "entries") {
		name := strings.Repeat("n", i+1)
		elems[name] = d.of(intType)
		arg[name] = elems[name].arg
	}
	return input{arg, func() any {
		out := make(map[string]int)
		for name, e := range elems {
			out[name] = e.eval().(int)
		}
		return out
	}}
}

// anything nests lists and maps of nodes and values.
func (d *drawer) anything(deep int) input {
	switch kind := rapid.IntRange(0, 3).Draw(d.T, "anything"); {
	case kind == 0 && deep > 0:
		elems := []input{d.anything(deep - 1), d.anything(deep - 1)}
		return input{[]any{elems[0].arg, elems[1].arg}, func() any { return []any{elems[0].eval(), elems[1].eval()} }}
	case kind == 1 && deep > 0:
		e := d.anything(deep - 1)
		return input{map[string]any{"x": e.arg}, func() any { return map[string]any{"x": e.eval()} }}
	case kind == 2:
		return d.of(stringType)
	}
	return d.of(intType)
}

// check runs a random graph.
func check(t *rapid.T, ctx context.Context, most int, executors map[string]spec.Executor) {
	nodes := draw(t, most)
	g := spec.New()
	for _, n := range rapid.Permutation(nodes).Draw(t, "order") {
		n.add(g)
	}
	want, results := make([][]spec.Key, 2), make([][]any, 2)
	for i := range want {
		for range rapid.IntRange(0, 4).Draw(t, "wanted") {
			n := rapid.SampledFrom(nodes).Draw(t, "want")
			want[i], results[i] = append(want[i], n.key), append(results[i], n.eval())
		}
	}
	for name, x := range executors {
		got, err := spec.Get[[][]any](ctx, x, g, want)
		if err != nil || fmt.Sprint(got) != fmt.Sprint(results) { // a list of numbers may be a []int or a []any
			t.Fatalf("%s: got %v, %v, want %v", name, got, err, results)
		}
	}
}

func TestAnyGraphGivesWhatRecursionGives(t *testing.T) {
	local := map[string]spec.Executor{"sync": spec.Sync(), "threads": spec.Threads(3)}
	testkit.Check(t, func(rt *rapid.T) { check(rt, t.Context(), 60, local) })
}

func TestAnyGraphGivesTheSameOnEachExecutor(t *testing.T) {
	for _, workers := range []struct {
		name string
		opts []mobula.StartOption
	}{{"processes", []mobula.StartOption{mobula.WithProcesses()}}, {"goroutines", nil}} {
		t.Run(workers.name, func(t *testing.T) {
			ctx := mobulatest.Context(t, append(workers.opts, mobula.WithCPUs(2))...)
			all := executors()
			testkit.Check(t, func(rt *rapid.T) { check(rt, ctx, 30, all) })
		})
	}
}
