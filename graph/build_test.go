package graph

import (
	"fmt"
	"slices"
	"testing"
)

// builder makes small graphs by hand.
type builder struct {
	tasks  []Task
	needs  [][]string
	wanted []string
}

func (b *builder) add(key string, needs ...string) *Task {
	b.tasks, b.needs = append(b.tasks, Task{Key: key}), append(b.needs, needs)
	return &b.tasks[len(b.tasks)-1]
}

func (b *builder) want(keys ...string) { b.wanted = append(b.wanted, keys...) }

func (b *builder) indices(keys []string) (out []int32) {
	for _, k := range keys {
		for i := range b.tasks {
			if b.tasks[i].Key == k {
				out = append(out, int32(i))
			}
		}
	}
	return out
}

func (b *builder) graph(t testing.TB) *Graph {
	t.Helper()
	tasks := slices.Clone(b.tasks)
	for i := range tasks {
		tasks[i].Deps = b.indices(b.needs[i])
	}
	wanted := b.indices(b.wanted)
	g, err := New(tasks, depthFirst(tasks), wanted)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// depthFirst is a simple static order: what a task needs, then the task.
func depthFirst(tasks []Task) []int32 {
	order := make([]int32, len(tasks))
	for i := range order {
		order[i] = -1
	}
	used := make([]bool, len(tasks))
	for i := range tasks {
		for _, d := range tasks[i].Deps {
			used[d] = true
		}
	}
	next := int32(0)
	var visit func(int32)
	visit = func(t int32) {
		if order[t] >= 0 {
			return
		}
		for _, d := range tasks[t].Deps {
			visit(d)
		}
		order[t] = next
		next++
	}
	for i := range tasks {
		if !used[i] {
			visit(int32(i))
		}
	}
	return order
}

// layer adds n tasks of one group, each with the inputs that needs gives.
func (b *builder) layer(name string, n int, needs func(i int) []string) []string {
	keys := make([]string, n)
	for i := range n {
		keys[i] = fmt.Sprintf("('%s', %d)", name, i)
		var in []string
		if needs != nil {
			in = needs(i)
		}
		b.add(keys[i], in...)
	}
	return keys
}

// keys gives the keys so far.
func (b *builder) keys() []string {
	var out []string
	for i := range b.tasks {
		out = append(out, b.tasks[i].Key)
	}
	return out
}
