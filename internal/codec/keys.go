package codec

import (
	"fmt"
	"reflect"

	"mobula/internal/errs"
)

// CBOR knows a map's keys by their bytes. Two keys that differ in Go may be encoded alike: 1 as an int and as an int64 in a map[any], structs that differ in
// hidden fields, a time in two zones of one offset. Whoever reads the map would find one of them, so it is refused. So is a key of a map[any] that
// could not be a key when it is read, as a struct, which is read as a map.

// distinct tells whether two different values of the type are always encoded differently.
func (r *Registry) distinct(t reflect.Type) bool {
	if r.marshals(t) {
		return false
	}
	switch t.Kind() {
	case reflect.Array:
		return r.distinct(t.Elem())
	case reflect.Struct:
		for i := range t.NumField() {
			if f := t.Field(i); !f.IsExported() || f.Tag.Get("cbor") != "" || f.Tag.Get("json") != "" || !r.distinct(f.Type) {
				return false
			}
		}
		return true
	}
	return t.Kind() >= reflect.Bool && t.Kind() <= reflect.Float64 || t.Kind() == reflect.String
}

// checkKeys refuses a map in which a key would be lost.
func (c *collector) checkKeys(m reflect.Value) error {
	seen := make(map[string]reflect.Value, m.Len())
	for _, k := range m.MapKeys() {
		b, err := modes().enc.Marshal(k.Interface())
		if err != nil {
			return errs.New(errs.CodeNotEncodable, "%s: a key: %v", m.Type(), err)
		}
		if other, is := seen[string(b)]; is {
			return errs.New(errs.CodeNotEncodable, "%s: the keys %s and %s are encoded alike", m.Type(), keyText(other), keyText(k))
		}
		seen[string(b)] = k
		if k.Kind() == reflect.Interface && !readableKey(b) {
			return errs.New(errs.CodeNotEncodable, "%s: the key %s could not be read: give the map the type of its keys", m.Type(), keyText(k))
		}
	}
	return nil
}

// readableKey tells whether an encoded key can be found again where the type is any. A large whole number cannot: it is read as a pointer.
func readableKey(key []byte) bool {
	var into map[any]bool
	if modes().dec.Unmarshal(append(append([]byte{0xa1}, key...), 0xf5), &into) != nil {
		return false
	}
	for k := range into {
		return k == nil || reflect.TypeOf(k).Kind() != reflect.Pointer
	}
	return false
}

// keyText shows a key with its type, the start of it if it is long.
func keyText(k reflect.Value) string {
	if k.Kind() == reflect.Interface {
		k = k.Elem()
	}
	if !k.IsValid() {
		return "nil"
	}
	text := fmt.Sprintf("%v (%s)", k, k.Type())
	if len(text) > 100 {
		text = text[:100] + "..."
	}
	return text
}
