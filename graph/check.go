package graph

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// MissingError names a dependency that is not in the graph.
type MissingError struct {
	Key string // what is missing
	By  string // the key of the task that depends on it, or "" if it is a wanted key
}

func (e *MissingError) Error() string {
	if e.By == "" {
		return fmt.Sprintf("graph: %q is wanted and not in the graph", e.Key)
	}
	return fmt.Sprintf("graph: %q depends on %q, which is not in the graph", e.By, e.Key)
}

// CycleError gives a path of keys, each depending on the next, that ends where it begins.
type CycleError struct{ Path []string }

func (e *CycleError) Error() string {
	path := e.Path
	if len(path) > 12 {
		path = slices.Concat(path[:6], []string{fmt.Sprintf("... (%d more)", len(path)-11)}, path[len(path)-5:])
	}
	return "graph: a cycle: " + strings.Join(path, " -> ")
}

// DuplicateError names a key that two tasks have.
type DuplicateError struct{ Key string }

func (e *DuplicateError) Error() string {
	return fmt.Sprintf("graph: two tasks have the key %q", e.Key)
}

func (g *Graph) check(order []int32) error {
	n := int32(len(g.tasks))
	if order != nil && len(order) != len(g.tasks) {
		return fmt.Errorf("graph: an order of %d for %d tasks", len(order), n)
	}
	for i := range g.tasks {
		if a := g.tasks[i].Ann; a != nil && (a.Retries < 0 || a.Retries > math.MaxUint8) { // a task counts them in a byte
			return fmt.Errorf("graph: %q: %d retries: give 0 to %d", g.tasks[i].Key, a.Retries, math.MaxUint8)
		}
		for _, d := range g.tasks[i].Deps {
			if d < 0 || d >= n {
				return &MissingError{Key: fmt.Sprintf("task %d", d), By: g.tasks[i].Key}
			}
		}
	}
	for _, w := range g.wanted {
		if w < 0 || w >= n {
			return &MissingError{Key: fmt.Sprintf("task %d", w)}
		}
	}
	return nil
}

// cycle gives the keys along a cycle, or nil. It removes tasks whose dependencies are all removed, from the roots
// up: those are in no cycle. Any task that is left leads to a cycle along its remaining dependencies.
func (g *Graph) cycle() []string {
	n := len(g.tasks)
	waits := make([]int32, n)
	stack := make([]int32, 0, n)
	for i := range int32(n) {
		if waits[i] = int32(len(g.deps.of(i))); waits[i] == 0 {
			stack = append(stack, i)
		}
	}
	gone := 0
	for len(stack) > 0 {
		t := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		gone++
		for _, u := range g.up.of(t) {
			if waits[u]--; waits[u] == 0 {
				stack = append(stack, u)
			}
		}
	}
	if gone == n {
		return nil
	}
	at := int32(slices.IndexFunc(waits, func(w int32) bool { return w > 0 }))
	seen := make(map[int32]int)
	var path []string
	for {
		if from, ok := seen[at]; ok {
			return append(path[from:], g.tasks[at].Key)
		}
		seen[at] = len(path)
		path = append(path, g.tasks[at].Key)
		for _, d := range g.deps.of(at) {
			if waits[d] > 0 {
				at = d
				break
			}
		}
	}
}
