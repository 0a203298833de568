package internode

import (
	"context"
	"reflect"
	"slices"
	"sync"
	"testing"

	"github.com/bufbuild/protocompile"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"
	"pgregory.net/rapid"

	"mobula/internal/testkit"
)

// schema is message Payload of internode.proto.
var schema = sync.OnceValues(func() (protoreflect.MessageDescriptor, error) {
	c := protocompile.Compiler{Resolver: protocompile.WithStandardImports(&protocompile.SourceResolver{ImportPaths: []string{".", "../../wire"}})}
	files, err := c.Compile(context.Background(), "internode.proto")
	if err != nil {
		return nil, err
	}
	return files[0].Messages().ByName("Payload"), nil
})

// bySchema reads a payload as the protobuf library does, by the schema alone.
func bySchema(t testing.TB, payload []byte) proto.Message {
	t.Helper()
	d, err := schema()
	if err != nil {
		t.Fatal(err)
	}
	p := dynamicpb.NewMessage(d)
	if err := proto.Unmarshal(payload, p); err != nil {
		t.Fatalf("%x: %v", payload, err)
	}
	return p
}

// unknown gives the fields that the schema does not have, or has of another type.
func unknown(m protoreflect.Message) (found []byte) {
	found = append(found, m.GetUnknown()...)
	m.Range(func(fd protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case fd.Message() == nil || fd.IsMap():
		case fd.IsList():
			for i := range v.List().Len() {
				found = append(found, unknown(v.List().Get(i).Message())...)
			}
		default:
			found = append(found, unknown(v.Message())...)
		}
		return true
	})
	return found
}

// The protobuf library reads by the schema what we write, and we read what it writes.
func TestTheBytesAreTheSchemas(t *testing.T) {
	eachMessage(t, func(t *testing.T, draw func(source) Msg) {
		testkit.Check(t, func(rt *rapid.T) {
			m := draw(rapidSource{rt})
			p := bySchema(t, encode(t, m))
			if more := unknown(p.ProtoReflect()); len(more) > 0 {
				rt.Fatalf("%+v has what the schema has not: %x", m, more)
			}
			theirs, err := proto.MarshalOptions{Deterministic: true}.Marshal(p)
			if err != nil {
				rt.Fatal(err)
			}
			if got, err := decode(theirs); err != nil || !reflect.DeepEqual(readable(t, got...), []Msg{m}) {
				rt.Fatalf("read from the library's bytes %+v (%v), want %+v", got, err, m)
			}
		})
	})
}

func TestMessagesAreReadAsTheyWereWritten(t *testing.T) {
	testkit.Check(t, func(rt *rapid.T) {
		s := rapidSource{rt}
		want := make([]Msg, 1+s.upTo(4))
		for i := range want {
			want[i] = draw(s)
		}
		payload := encode(t, want...)
		if two := encode(t, want[0]); len(want) > 1 {
			rest, err := (&Encoder{Agreed: Version}).Append(two, want[1:]...)
			if err != nil || !slices.Equal(rest, payload) {
				rt.Fatalf("one after the other they are %x (%v), together %x", rest, err, payload)
			}
		}
		if got, err := decode(payload); err != nil || !reflect.DeepEqual(readable(t, got...), want) {
			rt.Fatalf("read %+v (%v), wrote %+v", got, err, want)
		}
	})
}
