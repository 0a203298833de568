package world

import (
	"fmt"
	"math"
	"reflect"
	"strings"
)

// digester makes a number of all that an event or an effect says: of each field, also what it points to. So two runs with one number have had the same events.
type digester struct{ types map[reflect.Type]*digestOf }

// digestOf is how a type is read.
type digestOf struct {
	name uint64
	read func(v reflect.Value, depth int) uint64
}

const (
	hashBasis = 0xcbf29ce484222325
	hashPrime = 0x100000001b3
	maxDepth  = 32 // of pointers, in an event
)

func hashMix(h, x uint64) uint64 { return (h ^ x) * hashPrime }

func hashText(s string) uint64 {
	h := uint64(hashBasis)
	for i := range len(s) {
		h = hashMix(h, uint64(s[i]))
	}
	return h
}

func hashBytes(b []byte) uint64 { return checksum(b) | uint64(len(b))<<32 }

func (d *digester) of(ev any) uint64 {
	if ev == nil {
		return 0
	}
	v := reflect.ValueOf(ev)
	x := d.typeOf(v.Type())
	return hashMix(x.name, x.read(v, 0))
}

// typeOf gives how a type is read. It is there before it is complete, for types that refer to themselves.
func (d *digester) typeOf(t reflect.Type) *digestOf {
	x := d.types[t]
	if x == nil {
		x = &digestOf{name: hashText(t.String())}
		d.types[t] = x
		x.read = d.reader(t)
	}
	return x
}

func (d *digester) reader(t reflect.Type) func(v reflect.Value, depth int) uint64 {
	switch t.Kind() {
	case reflect.Bool:
		return func(v reflect.Value, _ int) uint64 {
			if v.Bool() {
				return 1
			}
			return 0
		}
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return func(v reflect.Value, _ int) uint64 { return uint64(v.Int()) }
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return func(v reflect.Value, _ int) uint64 { return v.Uint() }
	case reflect.Float32, reflect.Float64:
		return func(v reflect.Value, _ int) uint64 { return math.Float64bits(v.Float()) }
	case reflect.String:
		return func(v reflect.Value, _ int) uint64 { return hashText(v.String()) }
	case reflect.Slice, reflect.Array:
		return d.list(t)
	case reflect.Struct:
		return d.fields(t)
	case reflect.Map:
		return d.entries(t)
	case reflect.Pointer:
		return d.pointer(t)
	case reflect.Interface:
		return func(v reflect.Value, depth int) uint64 {
			if v.IsNil() {
				return 0
			}
			e := v.Elem()
			x := d.typeOf(e.Type())
			return hashMix(x.name, x.read(e, depth))
		}
	}
	return func(reflect.Value, int) uint64 { return 1 } // what is called, and says nothing
}

func (d *digester) list(t reflect.Type) func(v reflect.Value, depth int) uint64 {
	if t.Elem().Kind() == reflect.Uint8 && t.Kind() == reflect.Slice {
		return func(v reflect.Value, _ int) uint64 { return hashBytes(v.Bytes()) }
	}
	of := d.typeOf(t.Elem())
	return func(v reflect.Value, depth int) uint64 {
		h := hashMix(hashBasis, uint64(v.Len()))
		for i := range v.Len() {
			h = hashMix(h, of.read(v.Index(i), depth))
		}
		return h
	}
}

func (d *digester) fields(t reflect.Type) func(v reflect.Value, depth int) uint64 {
	all := make([]*digestOf, t.NumField())
	for i := range all {
		all[i] = d.typeOf(t.Field(i).Type)
	}
	return func(v reflect.Value, depth int) uint64 {
		h := uint64(hashBasis)
		for i, of := range all {
			h = hashMix(h, of.read(v.Field(i), depth))
		}
		return h
	}
}

// entries reads a map: in whatever order, it comes to the same.
func (d *digester) entries(t reflect.Type) func(v reflect.Value, depth int) uint64 {
	key, of := d.typeOf(t.Key()), d.typeOf(t.Elem())
	return func(v reflect.Value, depth int) uint64 {
		h := uint64(v.Len())
		for it := v.MapRange(); it.Next(); {
			h += hashMix(hashMix(hashBasis, key.read(it.Key(), depth)), of.read(it.Value(), depth))
		}
		return h
	}
}

// pointer reads what is pointed to. Of what is the world's own, as a session, the event says which one, by its name: the rest is not a part of it.
func (d *digester) pointer(t reflect.Type) func(v reflect.Value, depth int) uint64 {
	of := d.typeOf(t.Elem())
	own := strings.HasPrefix(t.String(), "*world.") && t != reflect.TypeFor[*peerEvent]()
	return func(v reflect.Value, depth int) uint64 {
		switch {
		case v.IsNil():
			return 0
		case own:
			return 1
		case depth == maxDepth:
			panic(broken(fmt.Sprintf("an event refers to itself: a %v", t)))
		}
		return hashMix(1, of.read(v.Elem(), depth+1))
	}
}
