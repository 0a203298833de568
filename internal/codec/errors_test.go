package codec

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"google.golang.org/protobuf/types/known/wrapperspb"

	"mobula/internal/errs"
	"mobula/wire"
)

type job struct {
	ID   int
	Done chan struct{}
}

type deep struct{ Jobs map[string][]*job }

type hidden struct{ n int }

type ring struct{ Next *ring }

type bomb struct{ N int }

func (bomb) MarshalCBOR() ([]byte, error) { panic("boom") }

func notEncodable[T any](t *testing.T, v T, want ...string) {
	t.Helper()
	r := NewRegistry(Refs{})
	for name, encode := range map[string]func() error{
		"typed": func() error { _, err := Of[T](r).Encode(&v, nil, inlineMax); return err },
		"any":   func() error { a := any(v); _, err := Of[any](r).Encode(&a, nil, inlineMax); return err },
	} {
		err := encode()
		if !errors.Is(err, errs.ErrNotEncodable) {
			t.Errorf("%T, %s: %v, want ErrNotEncodable", v, name, err)
			continue
		}
		for _, w := range want {
			if !strings.Contains(err.Error(), w) {
				t.Errorf("%T, %s: %q does not name %q", v, name, err, w)
			}
		}
	}
}

func TestNotEncodableNamesThePath(t *testing.T) {
	notEncodable(t, make(chan int), "chan int")
	notEncodable(t, func() {}, "func()")
	notEncodable(t, job{}, "codec.job.Done", "chan struct {}")
	notEncodable(t, deep{}, "codec.deep.Jobs[][].Done")
	notEncodable(t, []any{1, map[string]any{"f": func() {}}}, "func()")
	notEncodable(t, complex(1, 2), "complex128")
	notEncodable(t, hidden{1}, "hidden", "unexported")
	notEncodable(t, bomb{}, "bomb", "boom")
	loop := &ring{}
	loop.Next = &ring{Next: loop}
	notEncodable(t, loop, "ring", "cycle")
	var m any = map[string]any{}
	m.(map[string]any)["self"] = m
	notEncodable(t, m, "cycle")
	s := make([]any, 1)
	s[0] = s
	notEncodable(t, s, "cycle")
	long := &ring{}
	for range MaxDepth - 1 {
		long = &ring{long}
	}
	if got, err := Of[*ring](NewRegistry(Refs{})).Decode(encode(t, NewRegistry(Refs{}), long), false, nil); err != nil || !reflect.DeepEqual(got, long) {
		t.Errorf("a value of %d levels: %v", MaxDepth, err)
	}
	long = &ring{long}
	notEncodable(t, long, "ring", "nested")
	notEncodable(t, wrapperspb.String("\xff"), "StringValue")
}

func TestSharedPartsAreNoCycle(t *testing.T) {
	leafs := []*ring{{}}
	for range 200 { // deeper than where pointers begin to be remembered
		leafs = append(leafs, &ring{leafs[len(leafs)-1]})
	}
	roundTrip(t, []*ring{leafs[200], leafs[200], leafs[150]})
}

func mismatch[S, T any](t *testing.T, v S, want ...string) {
	t.Helper()
	r := NewRegistry(Refs{})
	w := encode(t, r, v)
	got, err := Of[T](r).Decode(w, false, nil)
	if !errors.Is(err, errs.ErrNotDecodable) {
		t.Errorf("%T as %T: got %v, %v, want ErrNotDecodable", v, got, got, err)
		return
	}
	for _, x := range append(want, reflect.TypeFor[T]().String()) {
		if !strings.Contains(err.Error(), x) {
			t.Errorf("%T as %T: %q does not name %q", v, got, err, x)
		}
	}
}

func TestNotDecodableNamesBothTypes(t *testing.T) {
	mismatch[string, int](t, "x", "string")
	mismatch[int, string](t, 1, "int")
	mismatch[[]float64, []int64](t, []float64{1}, "[]float64")
	mismatch[[]float64, string](t, []float64{1}, "[]float64")
	mismatch[[][3]int32, [][4]int32](t, [][3]int32{{}}, "[][3]int32")
	mismatch[[]int32, [][3]int32](t, []int32{1, 2, 3}, "[]int32")
	mismatch[point, embedded2](t, point{X: 1}, "codec.point")
	mismatch[int, uint8](t, 300, "int")
	mismatch[int, uint](t, -1, "int")
	mismatch[float64, int](t, 1.5, "float64")
	mismatch[*wrapperspb.StringValue, *wrapperspb.Int32Value](t, wrapperspb.String("x"), "google.protobuf.StringValue")
	mismatch[string, *wrapperspb.StringValue](t, "x", "string")
	mismatch[int, error](t, 1, "int")
}

type embedded2 struct{ Unknown []string }

func TestWideningThatLosesNothingIsAllowed(t *testing.T) {
	r := NewRegistry(Refs{})
	if got, err := Of[float64](r).Decode(encode(t, r, 7), false, nil); err != nil || got != 7 {
		t.Errorf("int as float64: %v, %v", got, err)
	}
	if got, err := Of[int8](r).Decode(encode(t, r, 7), false, nil); err != nil || got != 7 {
		t.Errorf("int as int8: %v, %v", got, err)
	}
	if got, err := Of[[]int32](r).Decode(encode(t, r, [][2]int32{{1, 2}, {3, 4}}), false, nil); err != nil || !reflect.DeepEqual(got, []int32{1, 2, 3, 4}) {
		t.Errorf("rows as a flat slice: %v, %v", got, err)
	}
	if got, err := Of[[]int](r).Decode(encode(t, r, []any{1, 2}), false, nil); err != nil || !reflect.DeepEqual(got, []int{1, 2}) {
		t.Errorf("a CBOR list as numbers: %v, %v", got, err)
	}
	// A struct of another name with the same fields: a renamed type, or another binary's.
	type point2 struct{ X, Y int }
	type point3 struct{ X, Y int }
	if got, err := Of[point3](r).Decode(encode(t, r, point2{1, 2}), false, nil); err != nil || got != (point3{1, 2}) {
		t.Errorf("same fields: %v, %v", got, err)
	}
}

func TestBadHeaders(t *testing.T) {
	r := NewRegistry(Refs{})
	for _, meta := range [][]byte{nil, {1}, {2, 3, 0, 0}, {1, 3, 0, 9}, {1, 1, 11, 2, 0x80}, {1, 99, 0, 0}, {1, 1, 99, 0}, {1, 1, 11, 2, 0, 0}} {
		for _, data := range [][]byte{nil, {1, 2, 3}, make([]byte, 16)} {
			if len(meta) == 6 && len(data) == 0 {
				continue // an empty array of any shape is one
			}
			if _, err := Of[[]float64](r).Decode(wire.Value{Meta: meta, Data: data}, true, nil); !errors.Is(err, errs.ErrNotDecodable) {
				t.Errorf("meta % x, %d bytes: %v, want ErrNotDecodable", meta, len(data), err)
			}
		}
	}
	bools := wire.Value{Meta: Header{Codec: Array, Elem: Bool}.Append(nil), Data: []byte{0, 1, 2}}
	if _, err := Of[[]bool](r).Decode(bools, true, nil); !errors.Is(err, errs.ErrNotDecodable) {
		t.Errorf("a bool of 2: %v", err)
	}
	shape := wire.Value{Meta: Header{Codec: Array, Elem: Float64, Dims: []uint64{2, 3}}.Append(nil), Data: make([]byte, 40)}
	if _, err := Of[[]float64](r).Decode(shape, true, nil); !errors.Is(err, errs.ErrNotDecodable) {
		t.Errorf("five elements for a shape of 2 x 3: %v", err)
	}
}
