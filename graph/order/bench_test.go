package order

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// The shapes that are measured, each of about n tasks.
var shapes = []struct {
	name string
	make func(n int) Tasks
}{
	{"reduction", reduction},
	{"shuffle", shuffle},
	{"stencil", stencil},
	{"pipelines", pipelines},
	{"product", product},
	{"broadcast", broadcast},
	{"cumulated", cumulated},
	{"chain", chain},
	{"splitters", splitters},
	{"layers", layers},
	{"wide", wide},
	{"plane", plane},
}

type builder struct{ Tasks }

func (b *builder) add(name string, deps ...int32) int32 {
	b.Tasks = append(b.Tasks, Task{Name: name, Deps: deps})
	return int32(len(b.Tasks) - 1)
}

func key(name string, i ...any) string {
	s := fmt.Appendf(nil, "('%s-8c7dd922ad47494fc02c388e12c00eac'", name)
	for _, x := range i {
		s = fmt.Appendf(s, ", %v", x)
	}
	return string(append(s, ')'))
}

// reduction loads parts, works on each and adds them up, four by four.
func reduction(n int) Tasks {
	var b builder
	var level []int32
	for i := range n * 3 / 7 {
		level = append(level, b.add(key("work", i), b.add(key("load", i))))
	}
	for depth := 0; len(level) > 1; depth++ {
		var next []int32
		for i := 0; i < len(level); i += 4 {
			next = append(next, b.add(key("sum", depth, i/4), level[i:min(i+4, len(level))]...))
		}
		level = next
	}
	return b.Tasks
}

// shuffle takes each part apart and puts the pieces together anew.
func shuffle(n int) Tasks {
	var b builder
	p := 1
	for p*p+3*p < n {
		p++
	}
	whole := make([]int32, p)
	for i := range whole {
		whole[i] = b.add(key("group", i), b.add(key("load", i)))
	}
	for j := range p {
		pieces := make([]int32, p)
		for i := range pieces {
			pieces[i] = b.add(key("piece", i, j), whole[i])
		}
		b.add(key("join", j), pieces...)
	}
	return b.Tasks
}

// stencil has rows of a thousand, each task of which takes three of the row before.
func stencil(n int) Tasks {
	var b builder
	const width = 1000
	for t := range max(n/width, 2) {
		for i := range int32(width) {
			var deps []int32
			if t > 0 {
				row := int32(t-1) * width
				deps = []int32{row + max(i-1, 0), row + i, row + min(i+1, width-1)}
			}
			b.add(key("step", t, i), deps...)
		}
	}
	return b.Tasks
}

// pipelines load, work and store, each on its own.
func pipelines(n int) Tasks {
	var b builder
	for i := range n / 3 {
		b.add(key("store", i), b.add(key("work", i), b.add(key("load", i))))
	}
	return b.Tasks
}

// product multiplies two matrices of blocks.
func product(n int) Tasks {
	var b builder
	p := 1
	for p*p*p+3*p*p < n {
		p++
	}
	left, right := make([]int32, p*p), make([]int32, p*p)
	for i := range left {
		left[i], right[i] = b.add(key("left", i/p, i%p)), b.add(key("right", i/p, i%p))
	}
	for i := range p {
		for j := range p {
			var parts []int32
			for k := range p {
				parts = append(parts, b.add(key("dot", i, j, k), left[i*p+k], right[k*p+j]))
			}
			b.add(key("sum", i, j), parts...)
		}
	}
	return b.Tasks
}

// broadcast is a pipeline each of whose parts takes one table too.
func broadcast(n int) Tasks {
	var b builder
	table := b.add(key("table"))
	for i := range n / 2 {
		b.add(key("merge", i), table, b.add(key("load", i)))
	}
	return b.Tasks
}

// cumulated adds up all parts so far in each of a hundred columns, and keeps each sum.
func cumulated(n int) Tasks {
	var b builder
	const columns = 100
	var sums [columns]int32
	for row := range n / (3 * columns) {
		for c := range sums {
			part := b.add(key("load", row, c))
			if row == 0 {
				sums[c] = part
				continue
			}
			sums[c] = b.add(key("sum", row, c), sums[c], part)
			b.add(key("keep", row, c), sums[c])
		}
	}
	return b.Tasks
}

func chain(n int) Tasks {
	var b builder
	at := b.add(key("step", 0))
	for i := range n - 1 {
		at = b.add(key("step", i+1), at)
	}
	return b.Tasks
}

// splitters is a chain of which each part is kept.
func splitters(n int) Tasks {
	var b builder
	at := b.add(key("step", 0))
	for i := range n / 2 {
		b.add(key("keep", i), at)
		at = b.add(key("step", i+1), at)
	}
	return b.Tasks
}

// plane has squares of tasks, each of which takes nine of the square before.
func plane(n int) Tasks {
	var b builder
	const steps = 20
	side := 1
	for side*side*steps < n {
		side++
	}
	for t := range steps {
		for x := range side {
			for y := range side {
				var deps []int32
				for i := range 9 {
					if x, y := x+i/3-1, y+i%3-1; t > 0 && x >= 0 && y >= 0 && x < side && y < side {
						deps = append(deps, int32(((t-1)*side+x)*side+y))
					}
				}
				b.add(key("step", t, x, y), deps...)
			}
		}
	}
	return b.Tasks
}

// wide keeps a result of each part and takes all parts in one task too.
func wide(n int) Tasks {
	var b builder
	var all []int32
	for i := range n / 3 {
		part := b.add(key("work", i), b.add(key("load", i)))
		b.add(key("keep", i), part)
		all = append(all, part)
	}
	b.add(key("all"), all...)
	return b.Tasks
}

// layers has two tasks a layer, each of which takes both of the one before.
func layers(n int) Tasks {
	var b builder
	var one, two int32
	for i := range n / 2 {
		if i == 0 {
			one, two = b.add(key("one", i)), b.add(key("two", i))
		} else {
			one, two = b.add(key("one", i), one, two), b.add(key("two", i), one, two)
		}
	}
	return b.Tasks
}

// scattered tasks take two of those before, any two. Nothing about them can be said in short.
func scattered(n int) Tasks {
	var b builder
	rng := rand.New(rand.NewPCG(3, 4))
	for i := range n {
		if i < n/10 {
			b.add(key("load", i))
		} else {
			b.add(key("work", i), rng.Int32N(int32(i)), rng.Int32N(int32(i)))
		}
	}
	return b.Tasks
}

// entangled tasks take three of the layer before, any three.
func entangled(n int) Tasks {
	var b builder
	rng := rand.New(rand.NewPCG(5, 6))
	width := int32(n / 10)
	for i := range int32(n) {
		if layer := i / width * width; layer == 0 {
			b.add(key("load", i))
		} else {
			before := layer - width
			b.add(key("work", i), before+rng.Int32N(width), before+rng.Int32N(width), before+rng.Int32N(width))
		}
	}
	return b.Tasks
}

func BenchmarkOfScattered(b *testing.B) {
	for _, n := range []int{100_000, 400_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			g := scattered(n)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := Of(g); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkOf(b *testing.B) {
	for _, shape := range shapes {
		for _, n := range []int{100_000, 1_000_000} {
			b.Run(fmt.Sprintf("%s/%d", shape.name, n), func(b *testing.B) {
				g := shape.make(n)
				b.ReportAllocs()
				for b.Loop() {
					if _, err := Of(g); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(g)), "ns/task")
			})
		}
	}
}
