package order

import (
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"mobula/internal/testkit"
)

// What dask's tests say of parts of the algorithm, and the same parts against plain definitions.

// graphOf reads "b: a; c: a b": each task with its dependencies. What is only depended on is added.
func graphOf(text string) Tasks {
	at := make(map[string]int32)
	var g Tasks
	number := func(name string) int32 {
		if _, ok := at[name]; !ok {
			at[name] = int32(len(g))
			g = append(g, Task{Name: name})
		}
		return at[name]
	}
	for line := range strings.SplitSeq(text, ";") {
		name, deps, _ := strings.Cut(line, ":")
		v := number(strings.TrimSpace(name))
		for dep := range strings.FieldsSeq(deps) {
			d := number(dep)
			g[v].Deps = append(g[v].Deps, d)
		}
	}
	return g
}

type parts struct {
	g      Tasks
	d      *dag
	below  *weights
	sorted []int32
	*reached
}

func partsOf(t interface{ Fatal(...any) }, g Tasks) parts {
	d, err := index(g)
	if err != nil {
		t.Fatal(err)
	}
	d.trim()
	below, sorted, err := d.weigh(g)
	if err != nil {
		t.Fatal(err)
	}
	return parts{g, d, below, sorted, reach(g, d, sorted, maxRuns(len(g)))}
}

func (p *parts) name(v int32) string { return p.g[p.d.given[v]].Name }

// far gives the names of the roots below each task that is none, or of the leaves above each.
func (p *parts) far(down bool) map[string]string {
	toward, away, sorted := &p.d.deps, &p.d.users, slices.Clone(p.sorted)
	if !down {
		toward, away = away, toward
		slices.Reverse(sorted)
	}
	out := make(map[string]string)
	sets := spans{most: maxRuns(len(p.g))}
	sets.ends(sorted, toward, away, p.place, func(v int32, s []span) bool {
		var names []string
		for w, at := range p.place {
			if toward.count(int32(w)) == 0 && slices.ContainsFunc(s, func(r span) bool { return r.lo <= at && at < r.hi }) {
				names = append(names, p.name(int32(w)))
			}
		}
		slices.Sort(names)
		out[p.name(v)] = strings.Join(names, " ")
		return false
	})
	return out
}

func TestRootsAndLeaves(t *testing.T) {
	for _, c := range []struct{ test, graph, roots, leaves, fanout string }{
		{
			"test_connecting_to_roots_single_root",
			"b1: a; b2: a; c: b1 b2",
			"b1: a; b2: a; c: a", "a: c; b1: c; b2: c", "a: 2; b1: 2; b2: 2; c: 2",
		}, {
			"test_connecting_to_roots_tree_reduction",
			"b1: a0; b2: a1; b3: a2; b4: a3; c1: b1 b2; c2: b3 b4; d: c1 c2",
			"b1: a0; b2: a1; b3: a2; b4: a3; c1: a0 a1; c2: a2 a3; d: a0 a1 a2 a3",
			"a0: d; a1: d; a2: d; a3: d; b1: d; b2: d; b3: d; b4: d; c1: d; c2: d",
			"a0: 1; a1: 1; a2: 1; a3: 1; b1: 1; b2: 1; b3: 1; b4: 1; c1: 1; c2: 1; d: 1",
		}, {
			"test_connecting_to_roots_long_linear_chains",
			"b0: a0; c0: b0; d0: c0; d1: c0; e1: d0 d1; b1: a1; c1: b1; d2: c1; d3: c1; f: e1 d2 d3 d1",
			"b0: a0; c0: a0; d0: a0; d1: a0; e1: a0; b1: a1; c1: a1; d2: a1; d3: a1; f: a0 a1",
			"", "",
		}, {
			"test_connecting_to_roots_asym",
			"b1: a0 a1; c1: b1; c2: b1; d1: c1 c2; b2: a2; b3: a3; c3: b3 b2; d2: b3 c3 a4",
			"b1: a0 a1; c1: a0 a1; c2: a0 a1; d1: a0 a1; b2: a2; b3: a3; c3: a2 a3; d2: a2 a3 a4",
			"a0: d1; a1: d1; b1: d1; c1: d1; c2: d1; a2: d2; a3: d2; a4: d2; b2: d2; b3: d2; c3: d2",
			"",
		},
	} {
		p := partsOf(t, graphOf(c.graph))
		check := func(what string, got map[string]string, want string) {
			t.Helper()
			var text []string
			for _, name := range slices.Sorted(maps.Keys(got)) {
				text = append(text, name+": "+got[name])
			}
			lines := strings.Split(want, "; ")
			slices.Sort(lines)
			if want != "" && !slices.Equal(text, lines) {
				t.Errorf("%s: %s are %q, not %q", c.test, what, text, lines)
			}
		}
		fanout := make(map[string]string)
		for v, n := range p.fanout {
			fanout[p.name(int32(v))] = fmt.Sprint(n)
		}
		check("roots", p.far(true), c.roots)
		check("leaves", p.far(false), c.leaves)
		check("fanouts", fanout, c.fanout)
	}
}

// test_connected_roots_deduplication_mem_usage: the sets of a graph that is used over and over take
// little. dask has each set once; here equal ones may be there twice, but each is a run or a few.
func TestSetsTakeLittle(t *testing.T) {
	for _, r := range readRecording(t, "collections.jsonl.gz") {
		if !strings.HasPrefix(r.Of, "array/") {
			continue
		}
		p := partsOf(t, r.graph())
		runs, tasks := 0, 0
		sets := spans{most: maxRuns(len(p.g))}
		sets.ends(p.sorted, &p.d.deps, &p.d.users, p.place, func(_ int32, s []span) bool {
			runs += len(s)
			tasks++
			return false
		})
		if sets.held != 0 || sets.coarse {
			t.Errorf("%s: %d runs are in use at the end, too many at some time: %t", r.Of, sets.held, sets.coarse)
		}
		if runs > 3*tasks {
			t.Errorf("%s: %d runs for %d tasks", r.Of, runs, tasks)
		}
	}
}

// test_stacklimit: a long chain is weighed; and the weights are those of the words around it.
func TestWeightsOfAChain(t *testing.T) {
	p := partsOf(t, chain(10_000))
	for i, v := range p.sorted {
		if p.below.small[v] != uint64(i)+1 {
			t.Fatalf("task %d of a chain has weight %d", i, p.below.small[v])
		}
	}
}

// Weights beyond a word are still exact, up to maxBits, and equal from there on.
func TestWeightsBeyondAWord(t *testing.T) {
	g := layers(2 * (maxBits + 100))
	p := partsOf(t, g)
	want := big.NewInt(1) // 1, 3, 7, 15: the next is twice this and one
	for i, v := range p.sorted {
		if i > 1 && i%2 == 0 {
			want.Add(want.Lsh(want, 1), big.NewInt(1))
		}
		got := new(big.Int).SetUint64(p.below.small[v])
		if p.below.small[v] == tooLarge {
			got = p.below.large[v]
		}
		if want.BitLen() <= maxBits && got.Cmp(want) != 0 || want.BitLen() > maxBits && got != heaviest {
			t.Fatalf("task %d has weight %d of %d bits", i, got, want.BitLen())
		}
	}
	last := p.sorted[len(p.sorted)-1]
	for _, c := range []struct {
		a, b int32
		want int
	}{{p.sorted[0], p.sorted[1], 0}, {p.sorted[100], p.sorted[102], -1}, {p.sorted[300], p.sorted[90], 1},
		{p.sorted[300], p.sorted[302], -1}, {p.sorted[300], p.sorted[301], 0}, {last, p.sorted[300], 1}, {last, p.sorted[len(p.sorted)-3], 0}} {
		if got := p.below.compare(c.a, c.b); got != c.want {
			t.Errorf("%d against %d is %d", c.a, c.b, got)
		}
	}
}

// drawGraph makes a graph without cycles, of tasks that are run.
func drawGraph(t *rapid.T, most int) Tasks {
	n := rapid.IntRange(1, most).Draw(t, "tasks")
	g := make(Tasks, n)
	for i := range g {
		g[i].Name = fmt.Sprint("t", i)
		if i > 0 {
			g[i].Deps = rapid.SliceOfNDistinct(rapid.Int32Range(0, int32(i)-1), 0, min(i, 5), rapid.ID).Draw(t, "deps")
		}
	}
	shuffled, _ := renumber(g, rapidRand(t))
	return shuffled
}

func TestReachAsDefined(t *testing.T) {
	testkit.Check(t, func(t *rapid.T) {
		p := partsOf(t, drawGraph(t, 30))
		for _, down := range []bool{true, false} {
			toward, order := &p.d.deps, slices.Clone(p.sorted)
			if !down {
				toward = &p.d.users
				slices.Reverse(order)
			}
			want := make(map[string]map[string]bool)
			for _, v := range order {
				set := make(map[string]bool)
				for _, w := range toward.of(v) {
					if toward.count(w) == 0 {
						set[p.name(w)] = true
					}
					maps.Copy(set, want[p.name(w)])
				}
				want[p.name(v)] = set
			}
			got := p.far(down)
			for v := range p.d.len() {
				names := strings.Join(slices.Sorted(maps.Keys(want[p.name(v)])), " ")
				if got[p.name(v)] != names {
					t.Fatalf("down %t: %s reaches %q, not %q", down, p.name(v), got[p.name(v)], names)
				}
				if down && int(p.roots[v]) != len(want[p.name(v)]) {
					t.Fatalf("%s has %d roots, not %d", p.name(v), p.roots[v], len(want[p.name(v)]))
				}
			}
		}
		for _, v := range p.sorted { // the leaves kept for each root
			if p.d.deps.count(v) == 0 && p.d.users.count(v) > 0 {
				want := len(strings.Fields(p.far(false)[p.name(v)]))
				if got := setSize(p.above[p.place[v]]); int(got) != want {
					t.Fatalf("%s has %d leaves above, not %d", p.name(v), got, want)
				}
			}
		}
	})
}

func TestUnionAsDefined(t *testing.T) {
	testkit.Check(t, func(t *rapid.T) {
		p := spans{most: maxRuns(0)}
		for range 3 { // what one leaves behind must not be seen by the next
			top := rapid.SampledFrom([]int32{5, 70, 1000, 100_000}).Draw(t, "top")
			base := rapid.Int32Range(0, 200).Draw(t, "base")
			want := make(map[int32]bool)
			sets := make([][]span, rapid.IntRange(1, 30).Draw(t, "sets"))
			of := make([]int32, len(sets))
			for i := range sets {
				of[i] = int32(i)
				lo := base
				for range rapid.IntRange(1, 6).Draw(t, "runs") {
					lo += rapid.Int32Range(1, top).Draw(t, "gap")
					hi := lo + rapid.Int32Range(1, 200).Draw(t, "length")
					sets[i] = append(sets[i], span{lo, hi})
					for x := lo; x < hi; x++ {
						want[x] = true
					}
					lo = hi
				}
			}
			got, _ := p.union(sets, of)
			last := int32(-1)
			for _, r := range got {
				if r.lo <= last || r.hi <= r.lo {
					t.Fatalf("the runs %v are not in order, or touch", got)
				}
				last = r.hi
				for x := r.lo; x < r.hi; x++ {
					if !want[x] {
						t.Fatalf("%d is in %v, the union of %v", x, got, sets)
					}
				}
			}
			if int(setSize(got)) != len(want) {
				t.Fatalf("%v is the union of %v", got, sets)
			}
			if slices.ContainsFunc(p.bits, func(w uint64) bool { return w != 0 }) {
				t.Fatal("bits are left")
			}
		}
	})
}

func TestTallyAsDefined(t *testing.T) {
	testkit.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 20).Draw(t, "places")
		lacks, begun := make([]int32, n), make([]bool, n)
		ranks := rapid.Permutation(slices.Collect(func(yield func(int32) bool) {
			for i := range int32(n) {
				yield(i)
			}
		})).Draw(t, "ranks")
		tree := newTally(n)
		for i := range lacks {
			lacks[i] = rapid.Int32Range(1, 6).Draw(t, "lacks")
			tree.set(int32(i), lacks[i], ranks[i])
		}
		tree.build()
		for range rapid.IntRange(0, 60).Draw(t, "steps") {
			if rapid.Bool().Draw(t, "begin") {
				i := rapid.IntRange(0, n-1).Draw(t, "place")
				begun[i] = true
				tree.begin(int32(i))
			} else {
				lo := rapid.IntRange(0, n-1).Draw(t, "lo")
				hi := rapid.IntRange(lo+1, n).Draw(t, "hi")
				for i := lo; i < hi; i++ {
					lacks[i] = max(lacks[i]-1, 0)
				}
				tree.lower(span{int32(lo), int32(hi)})
			}
			all, some := least{nothing, none}, least{nothing, none}
			for i := range lacks {
				if x := (least{lacks[i], ranks[i]}); lacks[i] > 0 {
					all = first(all, x)
					if begun[i] {
						some = first(some, x)
					}
				}
			}
			gotAll, gotSome := tree.least()
			if !agree(gotAll, all) || !agree(gotSome, some) {
				t.Fatalf("the least is %v, begun %v; want %v and %v", gotAll, gotSome, all, some)
			}
		}
	})
}

const none = 1 << 30

func agree(got, want least) bool {
	return got == want || got.lacks == nothing && want.lacks == nothing
}

func TestIndices(t *testing.T) {
	for name, want := range map[string][3]uint32{
		"":                {},
		"x":               {},
		"7":               {0, 0, 7},
		"x10":             {0, 0, 10},
		"('x-2e', 7, 12)": {2, 7, 12},
		"1-2-3-4":         {2, 3, 4},
	} {
		if got := indices(name); got != want {
			t.Errorf("%q has %v", name, got)
		}
	}
}
