package codec

import (
	"reflect"
	"unsafe"

	"mobula/internal/cborform"
	"mobula/internal/errs"
	"mobula/internal/ids"
)

// MaxDepth is how deep a value may be nested.
const MaxDepth = cborform.MaxDepth

const cyclesFrom = 64 // depth from which pointers are remembered: real values are rarely so deep

// collector walks a value before it is encoded: it collects references, follows interfaces, refuses cycles, some times and some
// big floats, none of which the type alone shows.
type collector struct {
	reg    *Registry
	refs   []ids.ObjectID
	own    bool                        // a part that only an interface shows encodes itself
	depth  int                         // parts on the way from the root to here
	levels int                         // of these, the maps and arrays of the encoded value
	seen   map[unsafe.Pointer]struct{} // on the way from the root to here
}

func (c *collector) walk(v reflect.Value, n *node) error {
	if n.isRef {
		id, err := c.reg.refs.ID(v)
		if err != nil {
			return err
		}
		if !id.IsZero() {
			c.refs = append(c.refs, id)
		}
		return nil
	}
	if n.isTime {
		return collectTime(v)
	}
	if n.isReal {
		return collectReal(v)
	}
	level := 0
	if k := v.Kind(); k != reflect.Pointer && k != reflect.Interface {
		level = 1
	}
	c.depth++
	if c.levels += level; c.levels > MaxDepth {
		return errs.New(errs.CodeNotEncodable, "%s: nested deeper than %d levels", n.typ, MaxDepth)
	}
	defer func() { c.depth, c.levels = c.depth-1, c.levels-level }()
	if c.depth > cyclesFrom {
		switch v.Kind() {
		case reflect.Pointer, reflect.Map, reflect.Slice:
			p := v.UnsafePointer()
			if _, again := c.seen[p]; again && p != nil && (v.Kind() != reflect.Slice || v.Len() > 0) {
				return errs.New(errs.CodeNotEncodable, "%s: the value contains itself (a cycle)", n.typ)
			}
			if c.seen == nil {
				c.seen = make(map[unsafe.Pointer]struct{})
			}
			if _, have := c.seen[p]; !have {
				c.seen[p] = struct{}{}
				defer delete(c.seen, p)
			}
		}
	}
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			return c.walk(v.Elem(), n.elem)
		}
	case reflect.Interface:
		return c.dynamic(v)
	case reflect.Slice, reflect.Array:
		if !n.elem.walk {
			return nil
		}
		for i := range v.Len() {
			if err := c.walk(v.Index(i), n.elem); err != nil {
				return err
			}
		}
	case reflect.Map:
		if n.alike {
			if err := c.checkKeys(v); err != nil {
				return err
			}
		}
		for it := v.MapRange(); it.Next(); {
			if n.key.walk {
				if err := c.walk(it.Key(), n.key); err != nil {
					return err
				}
			}
			if n.elem.walk {
				if err := c.walk(it.Value(), n.elem); err != nil {
					return err
				}
			}
		}
	case reflect.Struct:
		for _, f := range n.fields {
			if f.node.walk {
				if err := c.walk(v.Field(f.index), f.node); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func (c *collector) dynamic(v reflect.Value) error {
	if v.IsNil() {
		return nil
	}
	v = v.Elem()
	n := c.reg.node(v.Type())
	if n.err != nil {
		return n.err.at(v.Type().String())
	}
	c.own = c.own || n.own
	if n.walk {
		return c.walk(v, n)
	}
	return nil
}

// node gives the complete node of a type.
func (r *Registry) node(t reflect.Type) *node {
	p := r.PlanOf(t)
	if p.root != leaf {
		return p.root
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.nodeOf(t)
}

// attacher walks a decoded value, binds its references and refuses some times.
type attacher struct {
	reg *Registry
	b   Binder
}

func (a attacher) walk(v reflect.Value, n *node) error {
	if n.isRef {
		return a.reg.refs.Attach(v, a.b)
	}
	if n.isTime {
		return attachTime(v)
	}
	if n.isReal {
		return nil
	}
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() && n.elem.walk {
			return a.walk(v.Elem(), n.elem)
		}
	case reflect.Interface:
		return a.dynamic(v)
	case reflect.Slice, reflect.Array:
		if !n.elem.walk {
			return nil
		}
		for i := range v.Len() {
			if err := a.walk(v.Index(i), n.elem); err != nil {
				return err
			}
		}
	case reflect.Map:
		return a.walkMap(v, n)
	case reflect.Struct:
		for _, f := range n.fields {
			if f.node.walk {
				if err := a.walk(v.Field(f.index), f.node); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// walkMap copies what it changes: neither keys nor values of a map can be set in place.
func (a attacher) walkMap(v reflect.Value, n *node) error {
	if v.IsNil() || (!n.key.walk && !n.elem.walk) {
		return nil
	}
	out := reflect.MakeMapWithSize(v.Type(), v.Len())
	for it := v.MapRange(); it.Next(); {
		key := reflect.New(v.Type().Key()).Elem()
		key.Set(it.Key())
		val := reflect.New(v.Type().Elem()).Elem()
		val.Set(it.Value())
		if n.key.walk {
			if err := a.walk(key, n.key); err != nil {
				return err
			}
		}
		if n.elem.walk {
			if err := a.walk(val, n.elem); err != nil {
				return err
			}
		}
		if !key.Comparable() {
			return errs.New(errs.CodeNotDecodable, "%s: the key %s cannot be a map's", v.Type(), keyText(key))
		}
		out.SetMapIndex(key, val)
	}
	v.Set(out)
	return nil
}

// dynamic walks an interface, in which the CBOR decoder has put generic maps and slices, and refBytes for
// references.
func (a attacher) dynamic(v reflect.Value) error {
	if v.IsNil() {
		return nil
	}
	in := v.Elem()
	if in.Type() == typeOfRefBytes || in.Type() == typeOfActorBytes {
		if a.reg.refs.Any == nil {
			return errs.New(errs.CodeNotDecodable, "a reference found inside %s, where none can be", v.Type())
		}
		id, tag, err := ParseRef(in.Bytes())
		if err != nil {
			return err
		}
		ref, err := a.reg.refs.Any(id, tag, a.b)
		if err != nil {
			return err
		}
		if rv := reflect.ValueOf(ref); rv.Type().AssignableTo(v.Type()) {
			v.Set(rv)
			return nil
		}
		return errs.New(errs.CodeNotDecodable, "a reference found where the type is %s", v.Type())
	}
	if m, ok := in.Interface().(map[any]any); ok && textKeys(m) && typeOfTextMap.AssignableTo(v.Type()) {
		return a.textMap(v, m)
	}
	n := a.reg.node(in.Type())
	if !n.walk {
		return nil
	}
	c := reflect.New(in.Type()).Elem()
	c.Set(in)
	if err := a.walk(c, n); err != nil {
		return err
	}
	v.Set(c)
	return nil
}

var typeOfTextMap = reflect.TypeFor[map[string]any]()

func textKeys(m map[any]any) bool {
	for k := range m {
		if _, ok := k.(string); !ok {
			return false
		}
	}
	return true
}

// textMap puts a map with text keys into an interface as what a program mostly has put there, a map[string]any.
func (a attacher) textMap(v reflect.Value, m map[any]any) error {
	out := make(map[string]any, len(m))
	for k, e := range m {
		if err := a.dynamic(reflect.ValueOf(&e).Elem()); err != nil {
			return err
		}
		out[k.(string)] = e
	}
	v.Set(reflect.ValueOf(out))
	return nil
}
