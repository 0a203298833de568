package spec

import (
	"errors"
	"fmt"
	"maps"
	"math"

	"mobula/graph"
	"mobula/graph/internal/amount"
)

// Graph is a graph that is built node by node, in any order, by one goroutine. Once it is complete any number of goroutines
// may run it. If it has a fault, every run gives it.
type Graph struct {
	index map[Key]int32
	nodes []node
	errs  []error
}

type node struct {
	key   Key
	kind  nodeKind
	fn    *Func
	args  []any // arguments of a task; elements of a list; of an alias or data one value
	notes *Annotations
}

type nodeKind uint8

const (
	taskNode nodeKind = iota
	aliasNode
	dataNode
	listNode
)

// New makes an empty graph.
func New() *Graph { return &Graph{index: make(map[Key]int32)} }

// Len is the number of nodes.
func (g *Graph) Len() int { return len(g.nodes) }

// Task adds a call of a function and gives its key back. The function is a registered one of package mobula (a Func0 to Func5) or, for
// Sync and Threads, any Go function: it may take a context before its arguments, and may return an error after its one result. An
// argument is a Key, a list or map with string keys of arguments ([]any, []Key, map[string]any, ...), or any other value, taken as it
// is. A number fits a parameter of another number type that can hold it.
func (g *Graph) Task(key Key, function any, args ...any) Key {
	fn, err := funcOf(function)
	if err != nil {
		g.fault(&InvalidError{Key: key, Why: err.Error()})
	}
	return g.add(node{key: key, kind: taskNode, fn: fn, args: args})
}

// Alias adds another key for a node.
func (g *Graph) Alias(key, of Key) Key {
	return g.add(node{key: key, kind: aliasNode, args: []any{of}})
}

// Data adds a value. Keys in it have no meaning.
func (g *Graph) Data(key Key, value any) Key {
	return g.add(node{key: key, kind: dataNode, args: []any{value}})
}

// List adds a list. Its elements may be anything that an argument may be. It is not a task: it is made wherever it
// is taken.
func (g *Graph) List(key Key, elements ...any) Key {
	return g.add(node{key: key, kind: listNode, args: elements})
}

func (g *Graph) add(n node) Key {
	if n.key.kind == noKey {
		g.fault(&InvalidError{Key: n.key, Why: "the zero Key names nothing: make one with K, Int or Tuple"})
		return n.key
	}
	if _, ok := g.index[n.key]; ok {
		g.fault(&graph.DuplicateError{Key: n.key.String()})
		return n.key
	}
	g.index[n.key] = int32(len(g.nodes))
	g.nodes = append(g.nodes, n)
	return n.key
}

func (g *Graph) fault(err error) { g.errs = append(g.errs, err) }

// Err is everything that was wrong with the nodes added, or nil.
func (g *Graph) Err() error { return errors.Join(g.errs...) }

// Annotations are settings of single tasks.
type Annotations struct {
	// Priority: of the ready tasks one with a higher priority runs first, whatever the order says. Default 0.
	Priority int
	// Retries is how often a task runs again after an error, or a panic, of its own.
	Retries int
	// Resources are what a task takes while it runs: "CPU" (default 1), "GPU", "memory" (bytes) or any that an executor was given.
	Resources map[string]float64
}

// Annotate sets the annotations of tasks in the graph, in place of earlier ones.
func (g *Graph) Annotate(a Annotations, keys ...Key) {
	a.Resources = maps.Clone(a.Resources)
	why := a.check()
	for _, k := range keys {
		i, ok := g.index[k]
		switch {
		case !ok:
			g.fault(&graph.MissingError{Key: k.String()})
		case g.nodes[i].kind != taskNode:
			g.fault(&InvalidError{Key: k, Why: "it is no task, and cannot be annotated: annotate the tasks behind it"})
		case why != "":
			g.fault(&InvalidError{Key: k, Why: why})
		default:
			g.nodes[i].notes = &a
		}
	}
}

func (a *Annotations) check() string {
	if a.Retries < 0 || a.Retries > math.MaxUint8 {
		return fmt.Sprintf("%d retries: give 0 to %d", a.Retries, math.MaxUint8)
	}
	if a.Priority != int(int32(a.Priority)) {
		return fmt.Sprintf("priority %d: give one of 32 bits", a.Priority)
	}
	for name, n := range a.Resources {
		if wrong := amount.Wrong(n, name); wrong != "" {
			return wrong
		}
	}
	return ""
}
