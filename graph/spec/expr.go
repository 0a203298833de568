package spec

import (
	"fmt"
	"reflect"
)

// Expr is a compiled argument: it says how to make the value from results of tasks.
type Expr struct {
	Kind  ExprKind
	Type  reflect.Type  // of the value
	Value reflect.Value // of a literal
	Task  int32         // of a result: the task's number
	Elems []*Expr       // of a list or map
	Names []string      // of a map: beside Elems
}

// ExprKind is the kind of an Expr.
type ExprKind uint8

// The kinds.
const (
	Literal ExprKind = iota
	Result
	List
	Map
)

// Eval makes the value of the expression.
func (e *Expr) Eval(result func(task int32) reflect.Value) reflect.Value {
	switch e.Kind {
	case Literal:
		return e.Value
	case Result:
		return As(result(e.Task), e.Type)
	}
	parts := make([]reflect.Value, len(e.Elems))
	for i, x := range e.Elems {
		parts[i] = x.Eval(result)
	}
	return e.Assemble(parts)
}

// Assemble makes the value of a list or map from those of its elements.
func (e *Expr) Assemble(parts []reflect.Value) reflect.Value {
	out := reflect.New(e.Type).Elem()
	t := e.shape()
	if e.Kind == List {
		s := reflect.MakeSlice(t, len(parts), len(parts))
		for i, p := range parts {
			s.Index(i).Set(p)
		}
		out.Set(s)
		return out
	}
	m := reflect.MakeMapWithSize(t, len(parts))
	for i, p := range parts {
		m.SetMapIndex(reflect.ValueOf(e.Names[i]).Convert(t.Key()), p)
	}
	out.Set(m)
	return out
}

var (
	typeOfAnyList = reflect.TypeFor[[]any]()
	typeOfAnyMap  = reflect.TypeFor[map[string]any]()
)

// shape is the slice or map type to make, since Type may be an interface.
func (e *Expr) shape() reflect.Type {
	switch {
	case e.Type.Kind() != reflect.Interface:
		return e.Type
	case e.Kind == List:
		return typeOfAnyList
	}
	return typeOfAnyMap
}

// Elem is the type of the elements of a list or map.
func (e *Expr) Elem() reflect.Type { return e.shape().Elem() }

// As converts a value to the type it is taken as, to which it is assignable.
func As(v reflect.Value, t reflect.Type) reflect.Value {
	if v.Type() == t {
		return v
	}
	out := reflect.New(t).Elem()
	out.Set(v)
	return out
}

// fit converts a literal to a type.
func fit(v reflect.Value, t reflect.Type) (reflect.Value, error) {
	if !v.IsValid() {
		switch t.Kind() {
		case reflect.Pointer, reflect.Interface, reflect.Slice, reflect.Map, reflect.Func, reflect.Chan:
			return reflect.Zero(t), nil
		}
		return v, fmt.Errorf("nil cannot be a %v", t)
	}
	have := v.Type()
	switch {
	case have.AssignableTo(t):
		return As(v, t), nil
	case have.Kind() == t.Kind() && have.ConvertibleTo(t):
		return v.Convert(t), nil
	case isNumber(have) && isNumber(t):
		out := v.Convert(t)
		if back := out.Convert(have); !back.Equal(v) || negative(out) != negative(v) {
			return v, fmt.Errorf("%v cannot be a %v", v, t)
		}
		return out, nil
	}
	return v, fmt.Errorf("%v cannot be a %v", have, t)
}

func isNumber(t reflect.Type) bool {
	return t.Kind() >= reflect.Int && t.Kind() <= reflect.Float64 && t.Kind() != reflect.Uintptr
}

func negative(v reflect.Value) bool {
	return v.CanInt() && v.Int() < 0 || v.CanFloat() && v.Float() < 0
}
