package spec

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
)

var typeOfKey = reflect.TypeFor[Key]()

// isStructure tells whether values of a type are searched for keys: slices, and maps with string keys, of Key, any, or
// such a type again. A type that consists only of itself has no place for a key.
func isStructure(t reflect.Type) bool {
	var seen []reflect.Type
	for !slices.Contains(seen, t) {
		if t.Kind() != reflect.Slice && (t.Kind() != reflect.Map || t.Key().Kind() != reflect.String) {
			return false
		}
		e := t.Elem()
		if e == typeOfKey || e.Kind() == reflect.Interface && e.NumMethod() == 0 {
			return true
		}
		if t.Name() != "" { // a type without a name cannot contain itself
			seen = append(seen, t)
		}
		t = e
	}
	return false
}

// deepest is how deep lists and maps may nest, as in stored values (codec.MaxDepth): one that nests deeper contains itself.
const deepest = 10_000

var errEndless = fmt.Errorf("lists and maps more than %d deep: it contains itself", deepest)

// keysIn gives the keys in an argument in order, those of maps by name. It gives errEndless if the argument contains itself.
func keysIn(v reflect.Value, yield func(Key)) error { return keysUnder(v, 0, yield) }

func keysUnder(v reflect.Value, depth int, yield func(Key)) error {
	if v.IsValid() && v.Kind() == reflect.Interface {
		v = v.Elem()
	}
	switch {
	case !v.IsValid():
	case v.Type() == typeOfKey:
		yield(v.Interface().(Key))
	case !isStructure(v.Type()):
	case depth == deepest:
		return errEndless
	case v.Kind() == reflect.Slice:
		for i := range v.Len() {
			if err := keysUnder(v.Index(i), depth+1, yield); err != nil {
				return err
			}
		}
	default:
		for _, name := range sortedNames(v) {
			if err := keysUnder(v.MapIndex(name), depth+1, yield); err != nil {
				return err
			}
		}
	}
	return nil
}

func sortedNames(m reflect.Value) []reflect.Value {
	return slices.SortedFunc(slices.Values(m.MapKeys()), func(a, b reflect.Value) int {
		switch {
		case a.String() < b.String():
			return -1
		case a.String() > b.String():
			return 1
		}
		return 0
	})
}

// compiler turns arguments into expressions. A node is compiled once for each type that it is taken as.
type compiler struct {
	g    *Graph
	task map[int32]int32 // number of each task, by node; dependencies get theirs before their dependents are compiled
	made map[taken]*Expr

	depth int // depth of lists and maps in the present argument
}

type taken struct {
	node int32
	as   reflect.Type
}

// compile makes an expression of type t. A literal contains no keys.
func (c *compiler) compile(v reflect.Value, t reflect.Type, literal bool) (*Expr, error) {
	if v.IsValid() && v.Kind() == reflect.Interface {
		v = v.Elem()
	}
	if v.IsValid() && v.Type() == typeOfKey && !literal {
		return c.node(c.g.index[v.Interface().(Key)], t)
	}
	if !v.IsValid() || !isStructure(v.Type()) || literal && v.Type().AssignableTo(t) {
		v, err := fit(v, t)
		return &Expr{Kind: Literal, Type: t, Value: v}, err
	}
	return c.structure(v, t, literal)
}

func (c *compiler) structure(v reflect.Value, t reflect.Type, literal bool) (*Expr, error) {
	if c.depth == deepest {
		return nil, errEndless
	}
	c.depth++
	defer func() { c.depth-- }()
	e := &Expr{Kind: List, Type: t}
	if v.Kind() == reflect.Map {
		e.Kind = Map
	}
	shape := e.shape()
	if shape.Kind() != v.Kind() || !shape.AssignableTo(t) || shape.Kind() == reflect.Map && shape.Key().Kind() != reflect.String {
		return nil, fmt.Errorf("%v cannot be a %v", v.Type(), t)
	}
	add := func(v reflect.Value) error {
		x, err := c.compile(v, e.Elem(), literal)
		e.Elems = append(e.Elems, x)
		return err
	}
	if e.Kind == List {
		for i := range v.Len() {
			if err := add(v.Index(i)); err != nil {
				return nil, inside(err, strconv.Itoa(i))
			}
		}
	} else {
		for _, name := range sortedNames(v) {
			e.Names = append(e.Names, name.String())
			if err := add(v.MapIndex(name)); err != nil {
				return nil, inside(err, strconv.Quote(name.String()))
			}
		}
	}
	return fold(e), nil
}

// inside adds to an error where in a list or map its cause is, but not for a list or map that contains itself.
func inside(err error, at string) error {
	if err == errEndless {
		return err
	}
	return fmt.Errorf("[%s]: %w", at, err)
}

// fold makes a literal of a structure of literals.
func fold(e *Expr) *Expr {
	parts := make([]reflect.Value, len(e.Elems))
	for i, x := range e.Elems {
		if x.Kind != Literal {
			return e
		}
		parts[i] = x.Value
	}
	return &Expr{Kind: Literal, Type: e.Type, Value: e.Assemble(parts)}
}

// node gives the expression of a node, taken as type t.
func (c *compiler) node(i int32, t reflect.Type) (*Expr, error) {
	k := taken{i, t}
	if e := c.made[k]; e != nil {
		return e, nil
	}
	n := &c.g.nodes[i]
	var e *Expr
	var err error
	switch n.kind {
	case taskNode:
		if !n.fn.Out.AssignableTo(t) {
			err = fmt.Errorf("%v, which %q gives, cannot be a %v", n.fn.Out, n.key, t)
		}
		e = &Expr{Kind: Result, Type: t, Task: c.task[i]}
	case aliasNode:
		e, err = c.node(c.g.index[n.args[0].(Key)], t)
	case dataNode:
		e, err = c.compile(reflect.ValueOf(n.args[0]), t, true)
	case listNode:
		e, err = c.compile(reflect.ValueOf(n.args), t, false)
	}
	if err != nil {
		if n.kind == taskNode {
			return nil, err
		}
		return nil, fmt.Errorf("%q: %w", n.key, err)
	}
	c.made[k] = e
	return e, nil
}

// tasksIn gives the numbers of the tasks whose results an expression takes, each once, in order.
func tasksIn(es []*Expr) []int32 {
	var out []int32
	seen := make(map[int32]bool)
	var walk func(e *Expr)
	walk = func(e *Expr) {
		if e.Kind == Result && !seen[e.Task] {
			seen[e.Task] = true
			out = append(out, e.Task)
		}
		for _, x := range e.Elems {
			walk(x)
		}
	}
	for _, e := range es {
		walk(e)
	}
	return out
}
