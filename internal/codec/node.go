package codec

import (
	"reflect"

	"mobula/internal/errs"
)

// node is one type in the graph of types that the walker follows.
type node struct {
	typ    reflect.Type
	isRef  bool
	isTime bool
	isReal bool // a big.Float
	walk   bool // a value may hold references, times, big floats, interfaces, such maps or a cycle, so it must be walked
	alike  bool // of a map: different keys may be encoded alike
	own    bool // a value may have parts that encode themselves, in which references are not seen
	done   bool
	fields []field // of a struct
	elem   *node   // of a pointer, slice, array or map
	key    *node   // of a map
	err    *typeError
}

type field struct {
	index int
	name  string
	node  *node
}

// typeError is a type that cannot be encoded and the path to it.
type typeError struct {
	path string // ".Done", "[]", "" at the type itself
	typ  reflect.Type
	why  string
}

func (e *typeError) under(step string) *typeError {
	return &typeError{path: step + e.path, typ: e.typ, why: e.why}
}

func (e *typeError) at(root string) error {
	return errs.New(errs.CodeNotEncodable, "%s%s: %s: %s", root, e.path, e.typ, e.why)
}

var leaf = &node{done: true}

const (
	whyKind    = "channels, functions and raw pointers cannot leave the process"
	whyComplex = "complex numbers are encoded only as the elements of a slice"
	whyHidden  = "it has only unexported fields, which are not encoded: export them or implement encoding.BinaryMarshaler"
)

// nodeOf is called with r.mu held.
func (r *Registry) nodeOf(t reflect.Type) *node {
	if n, ok := r.nodes[t]; ok {
		if !n.done {
			n.walk = true // the type contains itself
		}
		return n
	}
	n := &node{typ: t}
	r.nodes[t] = n
	r.fill(n)
	n.done = true
	return n
}

func (r *Registry) fill(n *node) {
	t := n.typ
	if t.Kind() == reflect.Pointer {
		n.elem = n.child("", r.nodeOf(t.Elem()))
		return
	}
	if r.refs.Is != nil && t.Kind() != reflect.Interface && r.refs.Is(t) {
		n.isRef, n.walk = true, true
		return
	}
	if t == typeOfTime {
		n.isTime, n.walk = true, true
		return
	}
	if t == typeOfBigFloat {
		n.isReal, n.walk = true, true
		return
	}
	if r.marshals(t) {
		n.own = t != typeOfBigInt
		if t.Kind() == reflect.Struct {
			n.err = r.leftOut(t)
		}
		return
	}
	switch t.Kind() {
	case reflect.Chan, reflect.Func, reflect.UnsafePointer, reflect.Uintptr:
		n.err = &typeError{typ: t, why: whyKind}
	case reflect.Complex64, reflect.Complex128:
		n.err = &typeError{typ: t, why: whyComplex}
	case reflect.Interface:
		n.walk = true
	case reflect.Slice, reflect.Array:
		n.elem = n.child("[]", r.nodeOf(t.Elem()))
	case reflect.Map:
		n.key = n.child("[]", r.nodeOf(t.Key()))
		n.elem = n.child("[]", r.nodeOf(t.Elem()))
		n.alike = !r.distinct(t.Key())
		n.walk = n.walk || n.alike
	case reflect.Struct:
		r.fillStruct(n)
	}
}

// child applies the properties of a part to the whole.
func (n *node) child(step string, c *node) *node {
	n.walk = n.walk || c.walk || !c.done
	n.own = n.own || c.own
	if c.err != nil && n.err == nil {
		n.err = c.err.under(step)
	}
	return c
}

func (r *Registry) fillStruct(n *node) {
	t := n.typ
	hidden := 0
	for i := range t.NumField() {
		f := t.Field(i)
		if tag := f.Tag.Get("cbor"); tag == "-" || (tag == "" && f.Tag.Get("json") == "-") {
			continue
		}
		if !f.IsExported() && (!f.Anonymous || f.Type.Kind() != reflect.Struct) {
			if f.Name != "_" {
				hidden++
			}
			continue
		}
		n.fields = append(n.fields, field{i, f.Name, n.child("."+f.Name, r.nodeOf(f.Type))})
	}
	if hidden > 0 && len(n.fields) == 0 {
		n.err = &typeError{typ: t, why: whyHidden}
	}
	if left := r.leftOut(t); left != nil && n.err == nil {
		n.err = left
	}
}
