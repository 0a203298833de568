package codec

import (
	"reflect"
	"sync"

	"mobula/internal/errs"
	"mobula/internal/ids"
)

// Binder gets the references found in a decoded value and makes live handles of them.
type Binder interface {
	// Bind gets the id and tag that the reference was written with; its result is passed to Refs.Attach.
	Bind(id ids.ObjectID, tag uint64) (any, error)
}

// Refs teaches the package which Go types are object references. All reference types encode
// themselves with AppendRef and decode with ParseRef into an unbound reference.
type Refs struct {
	Is     func(t reflect.Type) bool                                // whether t (neither a pointer nor an interface) is a reference type
	ID     func(v reflect.Value) (ids.ObjectID, error)              // of a reference; zero for a nil one
	Attach func(v reflect.Value, b Binder) error                    // v is addressable and holds an unbound reference
	Any    func(id ids.ObjectID, tag uint64, b Binder) (any, error) // makes a reference found in an interface
}

// Codec is an additional codec, for types that have a layout of their own.
type Codec interface {
	ID() ID // FirstCustom or above, or Arrow
	Match(t reflect.Type) bool
	// Encode gives the exact size and the function that writes that many bytes.
	Encode(v any) (h Header, size int, fill func(dst []byte), err error)
	// Decode may alias data if alias is set: it is then valid until the caller's view is closed.
	Decode(h Header, data []byte, alias bool, want reflect.Type) (any, error)
}

// Registry holds type plans and further codecs. It is safe for concurrent use.
type Registry struct {
	refs  Refs
	plans sync.Map // reflect.Type -> *Plan

	mu     sync.Mutex
	nodes  map[reflect.Type]*node // guarded by mu while a plan is made; complete nodes are immutable
	custom []Codec                // guarded by mu
}

// NewRegistry makes an empty registry. With a zero Refs no type is a reference.
func NewRegistry(refs Refs) *Registry {
	return &Registry{refs: refs, nodes: make(map[reflect.Type]*node)}
}

// Add registers a codec ahead of the built-in ones. It must be called before the first value of a type that the
// codec matches is encoded or decoded.
func (r *Registry) Add(c Codec) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if c.ID() < FirstCustom && c.ID() != Arrow {
		return errs.New(errs.CodeInvalid, "codec id %d is reserved, use %d or above", c.ID(), FirstCustom)
	}
	for _, o := range r.custom {
		if o.ID() == c.ID() {
			return errs.New(errs.CodeInvalid, "codec id %d is taken by %T", c.ID(), o)
		}
	}
	r.custom = append(r.custom, c)
	return nil
}

// Refs gives the references in a value that is encoded elsewhere, its exported fields.
func (r *Registry) Refs(v reflect.Value) ([]ids.ObjectID, error) {
	n := r.node(v.Type())
	if n.err != nil || !n.walk {
		return nil, nil
	}
	c := collector{reg: r}
	err := c.walk(v, n)
	return c.refs, err
}

// Attach binds the references in a value that was decoded elsewhere; v is addressable.
func (r *Registry) Attach(v reflect.Value, b Binder) error {
	n := r.node(v.Type())
	if n.err != nil || !n.walk {
		return nil
	}
	return attacher{reg: r, b: b}.walk(v, n)
}

// PlanOf gives the plan of a type, made on first use.
func (r *Registry) PlanOf(t reflect.Type) *Plan {
	if p, ok := r.plans.Load(t); ok {
		return p.(*Plan)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if p, ok := r.plans.Load(t); ok {
		return p.(*Plan)
	}
	p := r.newPlan(t)
	r.plans.Store(t, p)
	return p
}
