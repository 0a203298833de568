package objectstore

import (
	"reflect"
	"testing"

	"mobula/internal/lint/parts"
)

// Parts refer to the parts below them only: what they ask of those above is an interface of their own.
func TestPartsKnowOnlyThoseBelow(t *testing.T) { parts.InOrder(t, reflect.TypeFor[Core](), 12) }
