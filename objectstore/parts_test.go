package objectstore

import (
	"reflect"
	"testing"
)

// Parts refer to the parts below them only: what they ask of those above is an interface of their own.
func TestPartsKnowOnlyThoseBelow(t *testing.T) {
	core := reflect.TypeFor[Core]()
	place := make(map[reflect.Type]int)
	for i := range core.NumField() {
		place[core.Field(i).Type] = i
	}
	for i := range core.NumField() {
		part := core.Field(i).Type.Elem()
		for k := range part.NumField() {
			f := part.Field(k)
			if f.Type == reflect.TypeFor[*Core]() {
				t.Errorf("%s knows the whole core", part.Name())
			}
			if at, ok := place[f.Type]; ok && at >= i {
				t.Errorf("%s knows %s, which is not below it", part.Name(), f.Type.Elem().Name())
			}
		}
	}
	if len(place) < 12 {
		t.Errorf("the core has %d parts", len(place))
	}
}
