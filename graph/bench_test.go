package graph

import (
	"fmt"
	"testing"
)

// What a graph costs grows with its edges: that one task takes all others makes it no dearer by the task.
func BenchmarkOneTaskTakesMany(b *testing.B) {
	for _, n := range []int{10_000, 100_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			tasks := make([]Task, n+1)
			for i := range n {
				tasks[i].Key = fmt.Sprintf("('t', %d)", i)
				tasks[n].Deps = append(tasks[n].Deps, int32(i))
			}
			tasks[n].Key = "sum"
			for b.Loop() {
				g, err := New(tasks, nil, []int32{int32(n)})
				if err != nil {
					b.Fatal(err)
				}
				c, err := NewCore(g, DefaultConfig())
				if err != nil {
					b.Fatal(err)
				}
				c.Step(0, WorkerJoined{Worker: 1, Threads: 2, Memory: 1 << 30})
				var line []Run
				take := func(es []Effect) {
					for _, e := range es {
						if r, ok := e.(Run); ok {
							line = append(line, r)
						}
					}
				}
				for take(c.Step(1, Start{})); len(line) > 0; {
					r := line[0]
					line = line[1:]
					take(c.Step(2, Done{Task: r.Task, Attempt: r.Attempt, Worker: 1, Bytes: 8}))
				}
				if c.State(int32(n)) != Memory {
					b.Fatal("the last task was not made")
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/task")
		})
	}
}
