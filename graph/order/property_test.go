package order

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"

	"mobula/internal/errs"
	"mobula/internal/testkit"

	"pgregory.net/rapid"
)

func rapidRand(t *rapid.T) *rand.Rand {
	return rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
}

// failer is what *testing.T and *rapid.T have in common.
type failer interface {
	Helper()
	Fatalf(format string, args ...any)
}

// mustBeOrder checks what holds of every order: numbers from 0 on, each once, dependencies first, none
// for what comes from outside.
func mustBeOrder(t failer, g Tasks, got []int32) {
	t.Helper()
	if len(got) != len(g) {
		t.Fatalf("%d priorities for %d tasks", len(got), len(g))
	}
	runs := 0
	for _, task := range g {
		if task.Kind != Outside {
			runs++
		}
	}
	seen := make([]bool, runs)
	for i, p := range got {
		if (p == None) != (g[i].Kind == Outside) {
			t.Fatalf("task %q of kind %d has priority %d", g[i].Name, g[i].Kind, p)
		}
		if p == None {
			continue
		}
		if p < 0 || int(p) >= runs || seen[p] {
			t.Fatalf("task %q has priority %d of %d, or has it too", g[i].Name, p, runs)
		}
		seen[p] = true
		for _, dep := range g[i].Deps {
			if got[dep] >= p {
				t.Fatalf("task %q has priority %d, %q which it needs has %d", g[i].Name, p, g[dep].Name, got[dep])
			}
		}
	}
}

// drawKinds makes some tasks data, lists or results from outside.
func drawKinds(t *rapid.T, g Tasks) {
	for i := range g {
		switch rapid.IntRange(0, 5).Draw(t, "kind") {
		case 0:
			g[i].Kind = Plain
		case 1:
			if len(g[i].Deps) == 0 {
				g[i].Kind = Outside
			}
		}
	}
}

func TestAnyGraphIsOrdered(t *testing.T) {
	testkit.Check(t, func(t *rapid.T) {
		g := drawGraph(t, 60)
		if rapid.Bool().Draw(t, "kinds") {
			drawKinds(t, g)
		}
		got, err := Of(g)
		if err != nil {
			t.Fatal(err)
		}
		mustBeOrder(t, g, got)
		other, to := renumber(g, rapidRand(t))
		again, err := Of(other)
		if err != nil {
			t.Fatal(err)
		}
		for i := range g {
			if again[to[i]] != got[i] {
				t.Fatalf("task %q has priority %d, under other numbers %d", g[i].Name, got[i], again[to[i]])
			}
		}
	})
}

// Sets that are not kept exactly lead to another order, but to one.
func TestCoarseSetsGiveAnOrderToo(t *testing.T) {
	others := 0
	for n := 300; n < 3000; n += 100 {
		for _, g := range []Tasks{entangled(n), scattered(n), plane(n)} {
			w, d, err := prepare(g, -1)
			if err != nil {
				t.Fatal(err)
			}
			w.run()
			got := number(d, w)
			mustBeOrder(t, g, got)
			exact, err := Of(g)
			if err != nil {
				t.Fatal(err)
			}
			if w.targets.coarse && !slices.Equal(got, exact) {
				others++
			}
		}
	}
	if others < 20 {
		t.Errorf("only %d orders are others", others)
	}
}

// Tasks that depend on others at random have sets that nothing makes short.
func TestEntangledGraphsTakeNoMore(t *testing.T) {
	g := entangled(60_000)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	w, d, err := prepare(g, maxRuns(len(g))/8)
	if err != nil {
		t.Fatal(err)
	}
	w.run()
	runtime.ReadMemStats(&after)
	mustBeOrder(t, g, number(d, w))
	if b := (after.TotalAlloc - before.TotalAlloc) / uint64(len(g)); !w.targets.coarse || b > 2000 {
		t.Errorf("coarse %t: %d bytes a task", w.targets.coarse, b)
	}
}

// Lists of results come last, the first that is found to be at the end as the very last; values before who
// takes them, and before the lists if only those do. dask fails on the latter.
func TestListsAndValues(t *testing.T) {
	g := Tasks{
		0: {Name: "value", Kind: Plain},
		1: {Name: "a"},
		2: {Name: "b", Deps: []int32{1, 0}},
		3: {Name: "list", Deps: []int32{1, 2}, Kind: Plain},
		4: {Name: "all", Deps: []int32{3, 2}, Kind: Plain},
		5: {Name: "c", Deps: []int32{0}},
		6: {Name: "orphan", Kind: Plain},
		7: {Name: "pair", Deps: []int32{6, 1, 2}, Kind: Plain},
		8: {Name: "other", Deps: []int32{6, 1, 2}, Kind: Plain},
		9: {Name: "top", Deps: []int32{7, 8}, Kind: Plain},
	}
	got, err := Of(g)
	if err != nil {
		t.Fatal(err)
	}
	mustBeOrder(t, g, got)
	names := make([]string, len(g))
	for i, p := range got {
		names[p] = g[i].Name
	}
	if s := strings.Join(names, " "); s != "value c a b orphan pair other list top all" {
		t.Errorf("the order is %s", s)
	}
}

func TestResultsFromOutside(t *testing.T) {
	g := Tasks{{Name: "b", Deps: []int32{2}}, {Name: "c", Deps: []int32{0}}, {Name: "a", Kind: Outside}}
	got, err := Of(g) // test_handle_out_of_graph_dependencies
	if want := []int32{0, 1, None}; err != nil || !slices.Equal(got, want) {
		t.Errorf("%v, %v", got, err)
	}
	if got, err := Of(Tasks{{Name: "a", Kind: Outside}}); err != nil || !slices.Equal(got, []int32{None}) {
		t.Errorf("%v, %v", got, err)
	}
	if got, err := Of(Tasks{}); err != nil || len(got) != 0 {
		t.Errorf("%v, %v", got, err)
	}
}

func TestADependencyGivenTwiceCountsOnce(t *testing.T) {
	once := graphOf("c: a b; d: a c; e: b")
	twice := slices.Clone(once)
	for i := range twice {
		twice[i].Deps = slices.Concat(once[i].Deps, once[i].Deps, once[i].Deps)
	}
	a, err := Of(once)
	b, err2 := Of(twice)
	if err != nil || err2 != nil || !slices.Equal(a, b) {
		t.Errorf("%v and %v, %v, %v", a, b, err, err2)
	}
}

type huge struct{ Tasks }

func (huge) Len() int { return MaxTasks + 1 }

func TestWhatCannotBeOrdered(t *testing.T) {
	ring := make(Tasks, 40)
	for i := range ring {
		ring[i] = Task{Name: fmt.Sprint("r", i), Deps: []int32{int32((i + 1) % len(ring))}}
	}
	for _, c := range []struct {
		what string
		g    Graph
		want string // in the message
	}{
		{"itself", graphOf("a: a"), "1 tasks depend on each other: a -> a"},
		{"a loop of three", graphOf("a: b; b: c; c: a"), "3 tasks depend on each other: a -> b -> c -> a"},
		{"a loop with more below", graphOf("a: b; b: c; c: d a"), "a -> b -> c -> a"},
		{"a loop with more above", graphOf("x: y; y: z; z: y"), "2 tasks depend on each other: y -> z -> y"},
		{"a loop between roots and leaves", graphOf("m: root n; n: m; leaf: n"), "2 tasks depend on each other: n -> m -> n"},
		{"a long loop", ring, "40 tasks depend on each other: r0 -> r1 -> r2"},
		{"a task that is none", Tasks{{Name: "a", Deps: []int32{1}}}, `"a" depends on task number 1; the graph has 1`},
		{"a number below none", Tasks{{Name: "a", Deps: []int32{-1}}}, "number -1"},
		{"outside with dependencies", Tasks{{Name: "a"}, {Name: "b", Deps: []int32{0}, Kind: Outside}}, `"b"`},
		{"a kind that is none", Tasks{{Name: "a", Kind: 7}}, "kind 7"},
		{"too many", huge{}, "268435457"},
	} {
		got, err := Of(c.g)
		if !errors.Is(err, errs.ErrInvalid) || got != nil || !strings.Contains(err.Error(), c.want) || len(err.Error()) > 300 {
			t.Errorf("%s gives %v, %v", c.what, got, err)
		}
	}
}

// No shape takes much memory, and none takes a deep stack or a time that grows faster than the graph.
func TestLargeGraphsTakeLittle(t *testing.T) {
	const n = 50_000
	for _, shape := range shapes {
		g := shape.make(n)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		got, err := Of(g)
		runtime.ReadMemStats(&after)
		if err != nil {
			t.Fatal(err)
		}
		mustBeOrder(t, g, got)
		most := uint64(400)
		if shape.name == "plane" { // dozens of runs for a task: see the package's costs
			most = 900
		}
		if b := (after.TotalAlloc - before.TotalAlloc) / uint64(len(g)); b > most {
			t.Errorf("%s: %d bytes a task", shape.name, b)
		}
	}
}

// FuzzOf: a graph of any edges is ordered, or has a cycle, which is named.
func FuzzOf(f *testing.F) {
	f.Add([]byte{4, 0, 1, 0, 2, 0, 3, 1})
	f.Add([]byte{3, 0, 1, 1, 2, 2, 0})
	f.Add([]byte{6, 0xc0, 1, 0, 2, 0x80, 3, 1, 5, 4})
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) == 0 {
			return
		}
		n := int32(b[0]%40) + 1
		g := make(Tasks, n)
		for i := range g {
			g[i].Name = fmt.Sprint("t", i*7%41)
		}
		for i := 1; i+1 < len(b); i += 2 {
			v := int32(b[i]&0x3f) % n
			g[v].Kind = Kind(b[i] >> 6 & 1)
			g[v].Deps = append(g[v].Deps, int32(b[i+1])%n)
		}
		got, err := Of(g)
		if err == nil {
			mustBeOrder(t, g, got)
			return
		}
		if !errors.Is(err, errs.ErrInvalid) || !cyclic(g) {
			t.Fatal(err)
		}
	})
}

// cyclic takes away tasks without dependencies until there are none; is there a task left?
func cyclic(g Tasks) bool {
	left := make(map[int32]bool)
	for i := range g {
		left[int32(i)] = true
	}
	for {
		before := len(left)
		for i := range left {
			if !slices.ContainsFunc(g[i].Deps, func(d int32) bool { return left[d] }) {
				delete(left, i)
			}
		}
		if len(left) == before {
			return before > 0
		}
	}
}
