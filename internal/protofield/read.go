package protofield

import (
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"

	"mobula/internal/ids"
)

// Field is one field of a message that is read.
type Field struct {
	Num  Number
	N    uint64 // of a number
	B    []byte // of anything with a length
	rest []byte // what follows the field
}

// Each calls f for every field of b. Fields of unknown numbers are f's to ignore.
func Each(b []byte, f func(Field) error) error {
	for len(b) > 0 {
		num, typ, n := protowire.ConsumeTag(b)
		if n < 0 {
			return protowire.ParseError(n)
		}
		b = b[n:]
		fd := Field{Num: num}
		switch typ {
		case protowire.VarintType:
			fd.N, n = protowire.ConsumeVarint(b)
		case protowire.Fixed64Type:
			fd.N, n = protowire.ConsumeFixed64(b)
		case protowire.BytesType:
			fd.B, n = protowire.ConsumeBytes(b)
		default:
			return fmt.Errorf("field %d has the wire type %d", num, typ)
		}
		if n < 0 {
			return protowire.ParseError(n)
		}
		b = b[n:]
		fd.rest = b
		if err := f(fd); err != nil {
			return err
		}
	}
	return nil
}

// Int is the number of PutInt.
func (f Field) Int() int64 { return protowire.DecodeZigZag(f.N) }

// Copied is the bytes for as long as they are needed.
func (f Field) Copied() []byte { return append([]byte(nil), f.B...) }

// AtMost refuses a number that what it is read into does not have.
func (f Field) AtMost(most uint64, name string) error {
	if f.N > most {
		return fmt.Errorf("%s %d is unknown", name, f.N)
	}
	return nil
}

// Into copies the bytes into an array.
func (f Field) Into(a []byte) error {
	if len(f.B) != len(a) {
		return fmt.Errorf("field %d has %d bytes, want %d", f.Num, len(f.B), len(a))
	}
	copy(a, f.B)
	return nil
}

// Task reads a task's id.
func (f Field) Task(id *ids.TaskID) error {
	var ok bool
	if *id, ok = ids.TaskOf(f.B); !ok {
		return fmt.Errorf("a task's id of %d bytes", len(f.B))
	}
	return nil
}

// Object reads an object's id.
func (f Field) Object(id *ids.ObjectID) error {
	var ok bool
	if *id, ok = ids.ObjectOf(f.B); !ok {
		return fmt.Errorf("an object's id of %d bytes", len(f.B))
	}
	return nil
}

// Entry reads one entry of PutMap.
func (f Field) Entry(m *map[string]string) error {
	var name, value string
	err := Each(f.B, func(f Field) error {
		switch f.Num {
		case 1:
			name = string(f.B)
		case 2:
			value = string(f.B)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if *m == nil {
		*m = make(map[string]string)
	}
	(*m)[name] = value
	return nil
}

// Numbers reads a packed list.
func Numbers[T ~uint32](f Field) (out []T, err error) {
	for b := f.B; len(b) > 0; {
		v, n := protowire.ConsumeVarint(b)
		if n < 0 {
			return nil, protowire.ParseError(n)
		}
		if out == nil {
			out = make([]T, 0, countVarints(b))
		}
		out, b = append(out, T(v)), b[n:]
	}
	return out, nil
}

// countVarints is how many numbers a packed list has, if it is intact.
func countVarints(b []byte) (n int) {
	for _, c := range b {
		if c < 0x80 {
			n++
		}
	}
	return n
}

// More appends a zero element to a list and returns it; f is the field that the element is read from. The first one makes room for all.
func More[S ~[]E, E any](f Field, list *S) *E {
	if *list == nil {
		*list = make(S, 0, 1+count(f.rest, f.Num))
	}
	*list = append(*list, *new(E))
	return &(*list)[len(*list)-1]
}

// count is how many fields of b have a number; of a malformed b those before the fault.
func count(b []byte, num Number) (n int) {
	for len(b) > 0 {
		have, _, size := protowire.ConsumeField(b)
		if size < 0 {
			return n
		}
		if have == num {
			n++
		}
		b = b[size:]
	}
	return n
}
