package errs

import (
	"bytes"
	"encoding"
	"errors"
	"fmt"
	"reflect"
	"sync"

	"github.com/fxamacker/cbor/v2"

	"mobula/internal/cborform"
	"mobula/internal/ids"
)

// userType is an application's registered error type.
type userType struct {
	name  string
	typ   reflect.Type // as in the error's interface: T or *T
	inner int          // the field of type error, set from the cause; -1: none
	refs  References   // nil: it has none
}

var errorType = reflect.TypeFor[error]()

// RegisterType lets an application's error type cross processes: an error of that type, also one wrapped in others, has that type
// on the other side, for errors.As and for its own Is method. Both sides register the same name, while their packages initialise.
// Exported fields travel as CBOR, or what MarshalBinary gives; a field of type error is the cause. refs finds references to
// objects in exported fields; it may be nil. RegisterType panics if the name is taken by another type, or a field would be lost.
func RegisterType[T error](name string, refs References) {
	t := userType{name: name, typ: reflect.TypeFor[T](), inner: -1, refs: refs}
	if err := t.check(); err != nil {
		panic(fmt.Sprintf("errs: error type %q (%v): %v", name, t.typ, err))
	}
	users.mu.Lock()
	defer users.mu.Unlock()
	if old, ok := users.types[name]; ok && old.typ != t.typ || users.byName[name] != nil {
		panic(fmt.Sprintf("errs: error name %q is registered twice", name))
	}
	if old, ok := users.byType[t.typ]; ok && old.name != name {
		panic(fmt.Sprintf("errs: error type %v is registered as %q and as %q", t.typ, old.name, name))
	}
	if users.types == nil {
		users.types, users.byType = make(map[string]*userType), make(map[reflect.Type]*userType)
	}
	users.types[name], users.byType[t.typ] = &t, &t
}

// form is how the fields of an error are encoded.
var form = sync.OnceValue(func() (f struct {
	enc cbor.EncMode
	dec cbor.DecMode
}) {
	var err [2]error
	f.enc, err[0] = cborform.Encoding().EncMode()
	f.dec, err[1] = cborform.Decoding().DecMode()
	if err := errors.Join(err[:]...); err != nil {
		panic(err) // the options are constants
	}
	return f
})

// value is the type that is encoded: for a pointer type the one it points to.
func (t *userType) value() reflect.Type {
	if t.typ.Kind() == reflect.Pointer {
		return t.typ.Elem()
	}
	return t.typ
}

// check finds the field with the cause, and fields that would be lost.
func (t *userType) check() error {
	v := t.value()
	switch {
	case t.typ.Kind() == reflect.Interface:
		return fmt.Errorf("it is an interface: register the types that implement it")
	case v == reflect.TypeFor[Error](), shows(reflect.PointerTo(v)):
		return fmt.Errorf("it is the runtime's own")
	}
	if t.refs != nil {
		if err := t.refs.LeftOut(v); err != nil {
			return err
		}
	}
	if t.marshals() || v.Kind() != reflect.Struct {
		return nil
	}
	for i := range v.NumField() {
		switch f := v.Field(i); {
		case f.Type == errorType && f.IsExported() && t.inner < 0:
			t.inner = i
		case f.Type == errorType && f.IsExported():
			return fmt.Errorf("it has more than one field of type error: give it MarshalBinary and UnmarshalBinary")
		case !f.IsExported() && f.Type.Size() > 0:
			return fmt.Errorf("its field %s would be lost: export it, or give the type MarshalBinary and UnmarshalBinary", f.Name)
		}
	}
	return nil
}

// marshals tells whether the type encodes itself.
func (t *userType) marshals() bool {
	p := reflect.PointerTo(t.value())
	return p.Implements(reflect.TypeFor[encoding.BinaryMarshaler]()) && p.Implements(reflect.TypeFor[encoding.BinaryUnmarshaler]())
}

// typeOf is the registered type of an error, or nil.
func typeOf(err error) *userType {
	users.mu.RLock()
	defer users.mu.RUnlock()
	return users.byType[reflect.TypeOf(err)]
}

func typeNamed(name string) *userType {
	users.mu.RLock()
	defer users.mu.RUnlock()
	return users.types[name]
}

// encode gives the encoded bytes of an error of the type, if it can be encoded, the references in it, and the cause in its field. The
// type's methods are the program's code: they may panic.
func (t *userType) encode(err error) (data []byte, refs []ids.ObjectID, ok bool, cause error) {
	defer func() {
		if recover() != nil {
			data, refs, ok, cause = nil, nil, false, nil
		}
	}()
	v := reflect.ValueOf(err)
	if v.Kind() == reflect.Pointer {
		if v.IsNil() {
			return nil, nil, false, nil
		}
		v = v.Elem()
	}
	own := reflect.New(v.Type())
	own.Elem().Set(v)
	if t.inner >= 0 {
		f := own.Elem().Field(t.inner)
		cause, _ = f.Interface().(error)
		f.SetZero()
	}
	data, failed := form().enc.Marshal(own.Interface())
	if failed != nil || len(data) > MaxData {
		return nil, nil, false, cause
	}
	if t.refs != nil {
		if refs, failed = t.refs.Find(own.Elem()); failed != nil {
			return nil, nil, false, cause
		}
	}
	return data, refs, true, cause
}

// MaxData bounds the encoded size of a registered type's value; a larger one travels as its text.
const MaxData = 64 << 10

// decode rebuilds the error; nil if it cannot. Without held, references in the error name nothing.
func (t *userType) decode(data []byte, causes []*Error, held any) (err error) {
	defer func() {
		if recover() != nil {
			err = nil
		}
	}()
	p := reflect.New(t.value())
	if err := form().dec.NewDecoder(bytes.NewReader(data)).Decode(p.Interface()); err != nil {
		return nil
	}
	if t.refs != nil && held != nil && t.refs.Attach(p.Elem(), held) != nil {
		return nil
	}
	if t.inner >= 0 && len(causes) > 0 {
		p.Elem().Field(t.inner).Set(reflect.ValueOf(error(causes[0])))
	}
	if t.typ.Kind() != reflect.Pointer {
		p = p.Elem()
	}
	err, _ = p.Interface().(error)
	return err
}

// typed is the error of the program's own type that e stands for; nil if there is none, or this program does not
// have the type.
func (e *Error) typed() error {
	if e.Code != CodeUser || len(e.Data) == 0 {
		return nil
	}
	if t := typeNamed(e.Name); t != nil {
		return t.decode(e.Data, e.Cause, e.held)
	}
	return nil
}
