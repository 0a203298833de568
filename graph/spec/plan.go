package spec

import (
	"fmt"
	"reflect"
	"slices"

	"mobula/graph"
	"mobula/graph/order"
)

// Plan is the checked part of a graph that the wanted keys need: its tasks, numbered so that dependencies come before their
// dependents. Aliases, data and lists are in the tasks' arguments. A plan never changes.
type Plan struct {
	Graph  *graph.Graph // of the tasks, in their static order
	Tasks  []Task
	Wanted []int32 // tasks whose results are wanted, each once

	result *Expr // what is wanted, made of their results
}

// Task is one task of a plan.
type Task struct {
	Key   Key
	Func  *Func
	Args  []*Expr
	Deps  []int32      // the tasks whose results Args take, each once
	Notes *Annotations // nil: none
}

// plan compiles everything that the wanted keys reach. t is the type of what is wanted.
func (g *Graph) plan(want any, t reflect.Type) (*Plan, error) {
	if err := g.Err(); err != nil {
		return nil, err
	}
	v := reflect.ValueOf(want)
	var keys []Key
	if err := keysIn(v, func(k Key) { keys = append(keys, k) }); err != nil {
		return nil, &InvalidError{Why: "what is wanted: " + err.Error()}
	}
	if err := onlyKeys(v); err != nil {
		return nil, err
	}
	reached, err := g.reach(keys)
	if err != nil {
		return nil, err
	}
	p := &Plan{}
	c := &compiler{g: g, task: make(map[int32]int32), made: make(map[taken]*Expr)}
	for _, i := range reached {
		if n := &g.nodes[i]; n.kind == taskNode {
			task, err := c.taskOf(n)
			if err != nil {
				return nil, err
			}
			c.task[i] = int32(len(p.Tasks))
			p.Tasks = append(p.Tasks, task)
		}
	}
	if p.result, err = c.compile(v, t, false); err != nil {
		return nil, &InvalidError{Why: "what is wanted: " + err.Error()}
	}
	p.Wanted = tasksIn([]*Expr{p.result})
	return p, p.build()
}

// onlyKeys refuses anything wanted that is not a key.
func onlyKeys(v reflect.Value) error {
	if v.IsValid() && v.Kind() == reflect.Interface {
		v = v.Elem()
	}
	switch {
	case v.IsValid() && v.Type() == typeOfKey:
		return nil
	case !v.IsValid():
		return &InvalidError{Why: "nil is wanted, and is no key: make one with K, Int or Tuple"}
	case !isStructure(v.Type()):
		return &InvalidError{Why: fmt.Sprintf("%v is wanted, and is no key: make one with K, Int or Tuple", v)}
	case v.Kind() == reflect.Slice:
		for i := range v.Len() {
			if err := onlyKeys(v.Index(i)); err != nil {
				return err
			}
		}
		return nil
	}
	for _, x := range v.Seq2() {
		if err := onlyKeys(x); err != nil {
			return err
		}
	}
	return nil
}

// taskOf compiles a task's arguments.
func (c *compiler) taskOf(n *node) (Task, error) {
	in, args := n.fn.In, n.args
	if last := len(in) - 1; n.fn.spread && len(args) >= last {
		args = append(slices.Clone(args[:last]), args[last:])
	}
	if len(args) != len(in) {
		return Task{}, &InvalidError{Key: n.key, Why: fmt.Sprintf("%d arguments, its function takes %d", len(n.args), len(in))}
	}
	t := Task{Key: n.key, Func: n.fn, Notes: n.notes, Args: make([]*Expr, len(args))}
	for i, a := range args {
		e, err := c.compile(reflect.ValueOf(a), in[i], false)
		if err != nil {
			return Task{}, &InvalidError{Key: n.key, Why: fmt.Sprintf("argument %d: %v", i, err)}
		}
		t.Args[i] = e
	}
	t.Deps = tasksIn(t.Args)
	return t, nil
}

// step is a node on the present path, and how many of its needs were visited.
type step struct {
	node int32
	keys []Key
	next int
}

// reach gives the nodes that keys need, dependencies first. A node that the path to it contains already is a cycle.
func (g *Graph) reach(keys []Key) ([]int32, error) {
	const fresh, onPath, done = 0, 1, 2
	state := make([]uint8, len(g.nodes))
	var out []int32
	var path []step
	for _, wanted := range keys {
		path = append(path[:0], step{node: -1, keys: []Key{wanted}})
		for len(path) > 0 {
			at := &path[len(path)-1]
			if at.next == len(at.keys) {
				if at.node >= 0 {
					state[at.node] = done
					out = append(out, at.node)
				}
				path = path[:len(path)-1]
				continue
			}
			k := at.keys[at.next]
			at.next++
			i, ok := g.index[k]
			switch {
			case !ok && at.node < 0:
				return nil, &graph.MissingError{Key: k.String()}
			case !ok:
				return nil, &graph.MissingError{Key: k.String(), By: g.nodes[at.node].key.String()}
			case state[i] == onPath:
				return nil, g.cycle(path, i)
			case state[i] == fresh:
				state[i] = onPath
				needs, err := g.needs(i)
				if err != nil {
					return nil, err
				}
				path = append(path, step{node: i, keys: needs})
			}
		}
	}
	return out, nil
}

// needs gives the keys that a node names.
func (g *Graph) needs(i int32) ([]Key, error) {
	n := &g.nodes[i]
	if n.kind == dataNode {
		return nil, nil
	}
	var keys []Key
	for at, a := range n.args {
		if err := keysIn(reflect.ValueOf(a), func(k Key) { keys = append(keys, k) }); err != nil {
			return nil, &InvalidError{Key: n.key, Why: fmt.Sprintf("argument %d: %v", at, err)}
		}
	}
	return keys, nil
}

func (g *Graph) cycle(path []step, i int32) error {
	from := slices.IndexFunc(path, func(s step) bool { return s.node == i })
	e := &graph.CycleError{}
	for _, s := range path[from:] {
		e.Path = append(e.Path, g.nodes[s.node].key.String())
	}
	e.Path = append(e.Path, e.Path[0])
	return e
}

// build makes the tasks' graph, in the static order.
func (p *Plan) build() error {
	ranks, err := order.Of(shape(p.Tasks))
	if err != nil {
		return err
	}
	tasks := make([]graph.Task, len(p.Tasks))
	for i := range p.Tasks {
		x := &p.Tasks[i]
		tasks[i] = graph.Task{Key: x.Key.String(), Deps: x.Deps}
		if x.Notes != nil {
			tasks[i].Priority = int32(x.Notes.Priority)
			tasks[i].Ann = &graph.Annotations{Retries: x.Notes.Retries}
		}
	}
	p.Graph, err = graph.New(tasks, ranks, p.Wanted)
	return err
}

// shape is the tasks as package order takes them.
type shape []Task

// Len implements order.Graph.
func (s shape) Len() int { return len(s) }

// Deps implements order.Graph.
func (s shape) Deps(i int) []int32 { return s[i].Deps }

// Name implements order.Graph.
func (s shape) Name(i int) string { return s[i].Key.String() }

// Kind implements order.Graph.
func (s shape) Kind(int) order.Kind { return order.Run }
