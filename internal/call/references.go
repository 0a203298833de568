package call

import (
	"reflect"
	"unsafe"

	"mobula/internal/client"
	"mobula/internal/codec"
	"mobula/internal/errs"
	"mobula/internal/ids"
)

// In this file the codec finds references in values. A reference type of package mobula is a struct with only a *Cell, which no other package
// can write. A struct that embeds a reference, and so has its methods, is encoded as that reference.

var typeOfCell = reflect.TypeFor[*Cell]()

// isReference tells whether t (neither a pointer nor an interface) is a reference.
func isReference(t reflect.Type) bool {
	_, ok := offsetOfCell(t)
	return ok
}

// offsetOfCell is the offset of a reference's cell.
func offsetOfCell(t reflect.Type) (at uintptr, ok bool) {
	if t.Kind() != reflect.Struct {
		return 0, false
	}
	if t.NumField() == 1 && t.Field(0).Type == typeOfCell {
		return 0, true
	}
	for i := range t.NumField() {
		f := t.Field(i)
		if !f.Anonymous {
			continue
		}
		if inner, is := offsetOfCell(f.Type); is {
			if ok {
				return 0, false // with two references the struct has the methods of neither
			}
			at, ok = f.Offset+inner, true
		}
	}
	return at, ok
}

// cellOf is the cell of a reference. It does not search a plain reference, by far the most common case.
func cellOf(v reflect.Value) *Cell {
	for v.NumField() != 1 || v.Field(0).Type() != typeOfCell {
		v = embedded(v)
	}
	return (*Cell)(v.Field(0).UnsafePointer())
}

// embedded is the field of v that is the reference.
func embedded(v reflect.Value) reflect.Value {
	for i := range v.NumField() {
		if v.Type().Field(i).Anonymous && isReference(v.Field(i).Type()) {
			return v.Field(i)
		}
	}
	panic("call: " + v.Type().String() + " is no reference")
}

func idOf(v reflect.Value) (ids.ObjectID, error) { return cellOf(v).passed() }

// attach binds the reference that UnmarshalRef left in v to a client.
func attach(v reflect.Value, b codec.Binder) error {
	at, _ := offsetOfCell(v.Type())
	c := (**Cell)(unsafe.Add(v.Addr().UnsafePointer(), at))
	if *c == nil || (*c).life.client != nil {
		return nil
	}
	live, err := b.Bind((*c).life.unbound, tagOf((*c).life.actor))
	if err != nil {
		return err
	}
	*c = live.(*Cell)
	return nil
}

func tagOf(actor bool) uint64 {
	if actor {
		return codec.TagActor
	}
	return codec.TagRef
}

// Wrap makes the public reference for a reference inside an interface value. Package mobula, which has the types, sets it.
var Wrap func(c *Cell, actor bool) any

func bindAny(id ids.ObjectID, tag uint64, b codec.Binder) (any, error) {
	c, err := b.Bind(id, tag)
	if err != nil {
		return nil, err
	}
	return Wrap(c.(*Cell), tag == codec.TagActor), nil
}

// binder gives decoded references handles of the client that decodes them.
type binder struct{ c *client.Client }

func (b binder) Bind(id ids.ObjectID, tag uint64) (any, error) {
	if b.c == nil {
		return nil, errs.New(errs.CodeNotDecodable, "object %v: a reference was decoded outside any cluster: use the context of a task or of Cluster.Context", id)
	}
	idle.borrowed()
	c := newCell(b.c, b.c.Bind(id), nil)
	if tag == codec.TagActor {
		c.life.room = b.c.KnownRoom(ids.ActorID(id.Task))
	}
	return c, nil
}

// Marshal writes the reference as a tagged id, for the codec.
func (c *Cell) Marshal(actor bool) ([]byte, error) {
	id, err := c.passed()
	if err != nil {
		return nil, err
	}
	if id.IsZero() {
		return []byte{0xf6}, nil
	}
	return codec.AppendRef(nil, id, tagOf(actor)), nil
}

// UnmarshalRef reads it; the codec then binds it to a client.
func UnmarshalRef(b []byte, actor bool) (*Cell, error) {
	if len(b) == 1 && b[0] == 0xf6 {
		return nil, nil
	}
	id, tag, err := codec.ParseRef(b)
	if err != nil {
		return nil, err
	}
	if want := tagOf(actor); tag != want {
		return nil, errs.New(errs.CodeNotDecodable, "object %v: a reference of CBOR tag %d, want %d", id, tag, want)
	}
	return &Cell{life: &life{unbound: id, actor: actor}}, nil
}
