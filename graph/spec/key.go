package spec

import (
	"strconv"
	"strings"
)

// Key names a node of a graph: a string, a number, or a tuple of keys. Keys are compared with ==, and may be keys of maps. The
// zero Key names nothing. As an argument of a task, or in a list of a node, a Key stands for its node's value.
type Key struct {
	kind keyKind
	text string
}

type keyKind uint8

const (
	noKey keyKind = iota
	stringKey
	intKey
	tupleKey
)

// K makes a string key, or, with indices, the tuple of a string and numbers that names a part of a collection:
// K("x", 0, 1) is Tuple(K("x"), Int(0), Int(1)).
func K(name string, index ...int) Key {
	if len(index) == 0 {
		return Key{stringKey, name}
	}
	parts := make([]Key, 1, 1+len(index))
	parts[0] = Key{stringKey, name}
	for _, i := range index {
		parts = append(parts, Int(i))
	}
	return Tuple(parts...)
}

// Int makes a key of a number. It differs from the string of its digits.
func Int(n int) Key { return Key{intKey, strconv.Itoa(n)} }

// Tuple makes a key of keys.
func Tuple(parts ...Key) Key {
	var b strings.Builder
	b.WriteByte('(')
	for i, p := range parts {
		if i > 0 {
			b.WriteString(", ")
		}
		p.quote(&b)
	}
	if len(parts) == 1 {
		b.WriteByte(',')
	}
	b.WriteByte(')')
	return Key{tupleKey, b.String()}
}

var escapes = strings.NewReplacer(`\`, `\\`, `'`, `\'`)

// quote writes the key as it stands in a tuple.
func (k Key) quote(b *strings.Builder) {
	if k.kind != stringKey {
		b.WriteString(k.text)
		return
	}
	b.WriteByte('\'')
	_, _ = escapes.WriteString(b, k.text) // a Builder does not fail
	b.WriteByte('\'')
}

// String is the key as Python's str writes it: x, 3, ('x', 0).
func (k Key) String() string { return k.text }
