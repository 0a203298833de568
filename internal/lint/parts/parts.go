package parts

import (
	"reflect"
	"testing"
)

// InOrder fails the test where a part of whole, a struct whose fields are its parts from the lowest to the highest, by value or by pointer, has a
// field that is the whole or a part that does not stand before it. What a part asks of those above it is to be an interface. least is how
// many parts there are at least.
func InOrder(t testing.TB, whole reflect.Type, least int) {
	t.Helper()
	place := make(map[reflect.Type]int)
	for i := range whole.NumField() {
		place[pointed(whole.Field(i).Type)] = i
	}
	if len(place) < least {
		t.Errorf("%v has %d parts, at least %d are expected", whole, len(place), least)
	}
	for i := range whole.NumField() {
		part := pointed(whole.Field(i).Type)
		for k := range part.NumField() {
			f := pointed(part.Field(k).Type)
			if f == whole {
				t.Errorf("%v knows all of %v", part, whole)
			}
			if at, is := place[f]; is && at >= i {
				t.Errorf("%v knows %v, which is not below it", part, f)
			}
		}
	}
}

func pointed(t reflect.Type) reflect.Type {
	if t.Kind() == reflect.Pointer {
		return t.Elem()
	}
	return t
}
