package wire

import (
	"reflect"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"pgregory.net/rapid"

	"mobula/internal/testkit"
)

func TestOurBytesAreTheGeneratedCodes(t *testing.T) {
	eachKind(t, func(t *testing.T, k Kind) {
		testkit.Check(t, func(rt *rapid.T) {
			m := drawMsg(rapidSource{rt}, k)
			want := newPB(t, k)
			toPB(t, reflect.ValueOf(m).Elem(), want)
			ours := Append(nil, m)
			got := newPB(t, k)
			if err := proto.Unmarshal(ours, got.Interface()); err != nil {
				rt.Fatalf("generated code refuses ours: %v\n%+v\n%x", err, m, ours)
			}
			if !proto.Equal(got.Interface(), want.Interface()) {
				rt.Fatalf("generated code reads\n%v\nwant\n%v", got.Interface(), want.Interface())
			}
			back, err := Decode(k, ours)
			if err != nil || !reflect.DeepEqual(back, m) {
				rt.Fatalf("we read our own bytes as\n%+v (%v)\nwant\n%+v", back, err, m)
			}
		})
	})
}

func TestWeReadTheGeneratedCodesBytes(t *testing.T) {
	eachKind(t, func(t *testing.T, k Kind) {
		testkit.Check(t, func(rt *rapid.T) {
			s := rapidSource{rt}
			m := drawMsg(s, k)
			p := newPB(t, k)
			toPB(t, reflect.ValueOf(m).Elem(), p)
			if s.upTo(1) == 1 {
				addUnknown(p)
			}
			data, err := proto.Marshal(p.Interface())
			if err != nil {
				rt.Fatal(err)
			}
			for _, alias := range []bool{false, true} {
				got, err := new(Decoder).message(k, data, alias)
				if err != nil || !reflect.DeepEqual(got, m) {
					rt.Fatalf("alias %v: we read\n%+v (%v)\nwant\n%+v", alias, got, err, m)
				}
			}
		})
	})
}

// addUnknown gives the message and every one inside it fields of a later version, one
// of each wire type, a group among them.
func addUnknown(m protoreflect.Message) {
	later := []byte{
		0x80, 0x7d, 0x05, // 2000, varint
		0x81, 0x7d, 1, 2, 3, 4, 5, 6, 7, 8, // fixed64
		0x82, 0x7d, 2, 'h', 'i', // bytes
		0x85, 0x7d, 1, 2, 3, 4, // fixed32
		0x83, 0x7d, 0x08, 0x01, 0x84, 0x7d, // group
	}
	m.SetUnknown(later)
	m.Range(func(fd protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case fd.Message() == nil:
		case fd.IsList():
			for i := range v.List().Len() {
				addUnknown(v.List().Get(i).Message())
			}
		default:
			addUnknown(v.Message())
		}
		return true
	})
}

func TestCopiedMessagesShareNothingWithTheirBytes(t *testing.T) {
	eachKind(t, func(t *testing.T, k Kind) {
		testkit.Check(t, func(rt *rapid.T) {
			m := drawMsg(rapidSource{rt}, k)
			data := Append(nil, m)
			got, err := Decode(k, data)
			if err != nil {
				rt.Fatal(err)
			}
			for i := range data {
				data[i] = 0xff
			}
			if !reflect.DeepEqual(got, m) {
				rt.Fatalf("overwriting the bytes changed the message to\n%+v", got)
			}
		})
	})
}

// A list or message may come in two halves; both count, as with the generated code.
func TestRepeatedFieldsMerge(t *testing.T) {
	testkit.Check(t, func(rt *rapid.T) {
		s := rapidSource{rt}
		a, b := drawMsg(s, KindHoldings).(*Holdings), drawMsg(s, KindHoldings).(*Holdings)
		data := Append(Append(nil, a), b)
		p := newPB(t, KindHoldings)
		if err := proto.Unmarshal(data, p.Interface()); err != nil {
			rt.Fatal(err)
		}
		got, err := Decode(KindHoldings, data)
		if err != nil {
			rt.Fatal(err)
		}
		want := newPB(t, KindHoldings)
		toPB(t, reflect.ValueOf(got).Elem(), want)
		if !proto.Equal(p.Interface(), want.Interface()) {
			rt.Fatalf("two halves read as\n%v\nwant\n%v", want.Interface(), p.Interface())
		}
	})
}
