package order

import (
	"cmp"
	"math"
	"math/big"
	"slices"
	"strings"

	"mobula/internal/errs"
)

// weights give for each task how many tasks are below it, including itself; a task that is reached by two paths
// counts twice. They double with each layer of a dense graph, so they soon exceed a word; only such weights are
// kept as big integers.
type weights struct {
	small []uint64 // tooLarge: see large
	large map[int32]*big.Int

	total, word big.Int // scratch
}

const (
	tooLarge = math.MaxUint64
	// maxBits bounds the size of a weight. Beyond it, after some hundreds of dense layers, weights count as equal.
	maxBits = 2048
)

func (w *weights) compare(a, b int32) int {
	if w.small[a] != tooLarge || w.small[b] != tooLarge {
		return cmp.Compare(w.small[a], w.small[b])
	}
	return w.large[a].Cmp(w.large[b])
}

// sum weighs v. Its dependencies must have been weighed.
func (w *weights) sum(v int32, deps []int32) {
	total := uint64(1)
	for _, dep := range deps {
		s := w.small[dep]
		if s >= tooLarge-total {
			w.sumLarge(v, deps)
			return
		}
		total += s
	}
	w.small[v] = total
}

func (w *weights) sumLarge(v int32, deps []int32) {
	if w.large == nil {
		w.large = make(map[int32]*big.Int)
	}
	w.small[v], w.large[v] = tooLarge, heaviest
	total := w.total.SetUint64(1)
	for _, dep := range deps {
		switch s := w.small[dep]; {
		case s != tooLarge:
			total.Add(total, w.word.SetUint64(s))
		case w.large[dep] == heaviest:
			return
		default:
			total.Add(total, w.large[dep])
		}
	}
	if total.BitLen() <= maxBits {
		w.large[v] = new(big.Int).SetBits(slices.Clone(total.Bits()))
	}
}

var heaviest = new(big.Int).Lsh(big.NewInt(1), maxBits)

// weigh gives the weights, and the tasks in an order in which each comes after its dependencies.
func (d *dag) weigh(g Graph) (*weights, []int32, error) {
	n := d.len()
	w := &weights{small: make([]uint64, n)}
	need := make([]int32, n)
	sorted := make([]int32, 0, n)
	var ready []int32
	live := 0
	for v := range n {
		need[v] = d.deps.count(v)
		if d.walked(v) {
			live++
		}
	}
	for v := range n {
		if !d.walked(v) || d.deps.count(v) > 0 {
			continue
		}
		// Tasks that wait only for this root follow at once: so the order stays close to the edges, and few sets
		// are held along it.
		ready = append(ready, v)
		for len(ready) > 0 {
			v := ready[len(ready)-1]
			ready = ready[:len(ready)-1]
			w.sum(v, d.deps.of(v))
			sorted = append(sorted, v)
			for _, u := range d.users.of(v) {
				if need[u]--; need[u] == 0 {
					ready = append(ready, u)
				}
			}
		}
	}
	if len(sorted) < live {
		return nil, nil, d.cycle(g, need)
	}
	return w, sorted, nil
}

// maxNamed is how many tasks of a cycle an error names.
const maxNamed = 12

// cycle names the tasks of a cycle. A task that still needs something is on a cycle, or above one.
func (d *dag) cycle(g Graph, need []int32) error {
	at := int32(0)
	for need[at] <= 0 {
		at++
	}
	const met = math.MinInt32
	waiting := func(v int32) bool { return need[v] > 0 || need[v] == met }
	next := func(v int32) int32 {
		for _, dep := range d.deps.of(v) {
			if waiting(dep) {
				return dep
			}
		}
		panic("order: a task waits for what is done") // need counts what is not done
	}
	for need[at] != met {
		need[at] = met
		at = next(at)
	}
	names := []string{g.Name(int(d.given[at]))}
	length := 0
	for v := next(at); ; v = next(v) {
		length++
		if length < maxNamed || v == at {
			names = append(names, g.Name(int(d.given[v])))
		} else if length == maxNamed {
			names = append(names, "...")
		}
		if v == at {
			break
		}
	}
	return errs.New(errs.CodeInvalid, "a graph with a cycle cannot be ordered: %d tasks depend on each other: %s", length, strings.Join(names, " -> "))
}
