package codec

import (
	"bytes"
	"math"
	"math/big"
	"net/netip"
	"reflect"
	"slices"
	"testing"
	"time"
	"unsafe"

	"github.com/fxamacker/cbor/v2"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/wrapperspb"
	"pgregory.net/rapid"

	"mobula/internal/testkit"
	"mobula/wire"
)

const inlineMax = 64

// data gives what a reader gets, whichever way the value was encoded.
func (e *Encoded) data(t testing.TB) wire.Value {
	t.Helper()
	v := wire.Value{Meta: e.Meta, Data: e.Inline, Refs: e.Refs}
	if e.Fill != nil {
		v.Data = make([]byte, e.Size)
		e.Fill(v.Data)
	}
	if len(v.Data) != e.Size {
		t.Fatalf("announced %d bytes, wrote %d", e.Size, len(v.Data))
	}
	return v
}

func encode[T any](t testing.TB, r *Registry, v T) wire.Value {
	t.Helper()
	e, err := Of[T](r).Encode(&v, nil, inlineMax)
	if err != nil {
		t.Fatalf("encode %T: %v", v, err)
	}
	return e.data(t)
}

// roundTrip encodes and decodes both ways, copied and aliased, and also by way of the type any.
func roundTrip[T any](t testing.TB, v T) {
	t.Helper()
	r := NewRegistry(Refs{})
	w := encode(t, r, v)
	for _, alias := range []bool{false, true} {
		got, err := Of[T](r).Decode(w, alias, nil)
		if err != nil {
			t.Fatalf("decode %T: %v", v, err)
		}
		if !same(got, v) {
			t.Errorf("%T: got %#v, want %#v", v, got, v)
		}
		in, out := reflect.ValueOf(&v).Elem(), new(T)
		p := r.PlanOf(in.Type())
		if e, err := p.EncodeValue(in, inlineMax); err != nil {
			t.Errorf("%T, type known at run time: %v", v, err)
		} else if d := e.data(t); !bytes.Equal(d.Meta, w.Meta) || !bytes.Equal(d.Data, w.Data) {
			t.Errorf("%T, type known at run time: encoded as %x %x, want %x %x", v, d.Meta, d.Data, w.Meta, w.Data)
		}
		if err := p.DecodeValue(w, alias, reflect.ValueOf(out).Elem(), nil); err != nil || !same(*out, v) {
			t.Errorf("%T, type known at run time: got %#v, %v, want %#v", v, *out, err, v)
		}
	}
	if any(v) == nil {
		return
	}
	a := encode[any](t, r, v)
	if got, err := Of[T](r).Decode(a, false, nil); err != nil || !same(got, v) {
		t.Errorf("%T by way of any: got %#v, %v, want %#v", v, got, err, v)
	}
}

func same(a, b any) bool {
	if m, ok := a.(proto.Message); ok {
		return proto.Equal(m, b.(proto.Message))
	}
	if x, ok := a.(float64); ok && math.IsNaN(x) {
		return math.IsNaN(b.(float64))
	}
	if x, ok := a.(time.Time); ok {
		return x.Equal(b.(time.Time))
	}
	return reflect.DeepEqual(a, b)
}

type celsius float64

type point struct {
	X, Y int
	Name string
	Tags []string
	At   time.Time
	Next *point
	Any  any
	M    map[string]float64
}

type embedded struct {
	point
	Z uint8 `cbor:"z"`
	h int
}

func TestRoundTripOfOneOfEach(t *testing.T) {
	roundTrip(t, 1.5)
	roundTrip(t, math.NaN())
	roundTrip(t, float32(math.Inf(-1)))
	roundTrip(t, 42)
	roundTrip(t, uint8(255))
	roundTrip(t, int64(math.MinInt64))
	roundTrip(t, uint64(math.MaxUint64))
	roundTrip(t, true)
	roundTrip(t, "grüße")
	roundTrip(t, "")
	roundTrip(t, celsius(-273.15))
	roundTrip(t, 3*time.Second)
	roundTrip(t, []byte("bytes"))
	roundTrip(t, bytes.Repeat([]byte("long"), 100))
	roundTrip(t, []float64{1, 2, math.Pi})
	roundTrip(t, []celsius{1, 2})
	roundTrip(t, []int{})
	roundTrip(t, make([]int32, 1000))
	roundTrip(t, []bool{true, false})
	roundTrip(t, []complex128{1 + 2i})
	roundTrip(t, [][16]uint8{{1}, {2}})
	roundTrip(t, [][2][3]int16{{{1, 2, 3}, {4, 5, 6}}})
	roundTrip(t, []string{"a", "b"})
	roundTrip(t, map[string]int{"a": 1})
	roundTrip(t, [3]int{1, 2, 3})
	roundTrip(t, struct{}{})
	roundTrip(t, point{X: 1, Name: "p", Tags: []string{"t"}, At: time.Unix(1, 2).UTC(), Next: &point{Y: 2}, M: map[string]float64{"m": .5}})
	roundTrip(t, &point{X: 3})
	roundTrip(t, embedded{point: point{X: 1}, Z: 7})
	roundTrip(t, time.Date(2026, 1, 2, 3, 4, 5, 678_901_234, time.FixedZone("x", 3600)))
	roundTrip(t, big.NewInt(0).Lsh(big.NewInt(1), 100))
	roundTrip(t, netip.MustParseAddr("10.1.2.3"))
	roundTrip(t, wrapperspb.String("proto"))
	long, err := structpb.NewStruct(map[string]any{"k": string(bytes.Repeat([]byte("v"), 200))})
	if err != nil {
		t.Fatal(err)
	}
	roundTrip(t, long)
	var nilProto *wrapperspb.StringValue
	roundTrip(t, nilProto)
	var nilPoint *point
	roundTrip(t, nilPoint)
	roundTrip[any](t, nil)
	roundTrip[any](t, "text")
	roundTrip[any](t, []float32{1, 2})
	roundTrip[any](t, int64(7))
	roundTrip[error](t, nil)
}

func TestUnexportedFieldStaysBehind(t *testing.T) {
	r := NewRegistry(Refs{})
	got, err := Of[embedded](r).Decode(encode(t, r, embedded{Z: 1, h: 9}), false, nil)
	if err != nil || got.h != 0 || got.Z != 1 {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestScalarsAreTheLibrarysBytes(t *testing.T) {
	enc, err := cbor.CoreDetEncOptions().EncMode()
	if err != nil {
		t.Fatal(err)
	}
	check := func(t *rapid.T, v any, got []byte) {
		want, err := enc.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Fatalf("%T %v: % x, the library writes % x", v, v, got, want)
		}
	}
	testkit.Check(t, func(t *rapid.T) {
		f := rapid.OneOf(rapid.Float64(), rapid.Map(rapid.Float32(), func(f float32) float64 { return float64(f) }),
			rapid.Map(rapid.Int16(), func(n int16) float64 { return float64(n) / 16 }),
			rapid.SampledFrom([]float64{math.NaN(), math.Inf(1), math.Copysign(0, -1), 5.960464477539063e-08, 65504, 65505})).Draw(t, "f")
		check(t, f, appendFloat64(nil, f))
		check(t, float32(f), appendFloat32(nil, float32(f)))
		n := rapid.Int64().Draw(t, "n")
		check(t, n, appendInt(nil, n))
		check(t, uint64(n), appendHead(nil, 0, uint64(n)))
		check(t, n > 0, appendBool(nil, n > 0))
		for _, b := range [][]byte{appendFloat64(nil, f)} {
			if back, ok := readFloat(b); !ok || back != f && f == f {
				t.Fatalf("% x reads as %v", b, back)
			}
		}
		if back, ok := readInt(appendInt(nil, n), 8); !ok || back != n {
			t.Fatalf("%d reads as %d", n, back)
		}
	})
}

func TestPropertyRoundTrip(t *testing.T) {
	r := NewRegistry(Refs{})
	type rec struct {
		A int8
		B uint32
		C string
		D []byte
		E []float32
		F map[int16]string
		G *rec2
		H [2]bool
		I any
	}
	gen := rapid.Custom(func(t *rapid.T) rec {
		v := rec{A: rapid.Int8().Draw(t, "a"), B: rapid.Uint32().Draw(t, "b"), C: rapid.String().Draw(t, "c"),
			D: rapid.SliceOfN(rapid.Byte(), 1, 200).Draw(t, "d"), E: rapid.SliceOfN(rapid.Float32(), 1, 20).Draw(t, "e"),
			F: rapid.MapOfN(rapid.Int16(), rapid.String(), 1, 5).Draw(t, "f"), H: [2]bool{true, false}, I: rapid.SampledFrom([]any{nil, int64(1), "x", true, 2.5}).Draw(t, "i")}
		if rapid.Bool().Draw(t, "g") {
			v.G = &rec2{rapid.Int().Draw(t, "g.x")}
		}
		return v
	})
	testkit.Check(t, func(t *rapid.T) {
		v := gen.Draw(t, "v")
		e, err := Of[rec](r).Encode(&v, nil, inlineMax)
		if err != nil {
			t.Fatal(err)
		}
		got, err := Of[rec](r).Decode(e.Value(), rapid.Bool().Draw(t, "alias"), nil)
		if err != nil || !reflect.DeepEqual(got, v) {
			t.Fatalf("got %+v, %v, want %+v", got, err, v)
		}
		n := rapid.SliceOfN(rapid.Uint64(), 1, 100).Draw(t, "n")
		ne, err := Of[[]uint64](r).Encode(&n, nil, 0)
		if err != nil || ne.Size != 8*len(n) || len(ne.Inline) != ne.Size || unsafe.Pointer(&ne.Inline[0]) != unsafe.Pointer(&n[0]) {
			t.Fatalf("%+v, %v: a large array is not copied by its encoding", ne, err)
		}
		if back, err := Of[[]uint64](r).Decode(wire.Value{Meta: ne.Meta, Data: slices.Clone(ne.Inline)}, true, nil); err != nil || !reflect.DeepEqual(back, n) {
			t.Fatalf("got %v, %v, want %v", back, err, n)
		}
	})
}

type rec2 struct{ X int }

func TestArraysAreReadInPlace(t *testing.T) {
	r := NewRegistry(Refs{})
	src := []float64{1, 2, 3}
	v := encode(t, r, src)
	words := make([]float64, 3) // aligned memory, as a segment's
	mem := unsafe.Slice((*byte)(unsafe.Pointer(&words[0])), 24)
	copy(mem, v.Data)
	v.Data = mem
	got, err := Of[[]float64](r).Decode(v, true, nil)
	if err != nil || &got[0] != &words[0] || cap(got) != 3 {
		t.Errorf("aliased: %v, %v, capacity %d", got, err, cap(got))
	}
	got, err = Of[[]float64](r).Decode(v, false, nil)
	if err != nil || &got[0] == &words[0] {
		t.Errorf("copied: %v, %v", got, err)
	}
	// What is not aligned is copied, never read askew.
	odd := append(make([]byte, 0, 32), 0)
	odd = append(odd, v.Data...)
	for off := range 2 {
		w := wire.Value{Meta: v.Meta, Data: odd[1:25]}
		if off == 1 {
			copy(odd[8:], v.Data)
		}
		if back, err := Of[[]float64](r).Decode(w, true, nil); err == nil && uintptr(unsafe.Pointer(&back[0]))%8 != 0 {
			t.Error("an unaligned slice was handed out")
		}
	}
}

func TestSmallValuesAreCopiedWhenEncoded(t *testing.T) {
	r := NewRegistry(Refs{})
	src := []byte("small")
	v := encode(t, r, src)
	src[0] = 'X'
	if string(v.Data) != "small" {
		t.Errorf("the message changed with the caller's slice: %q", v.Data)
	}
}

func TestHotPathAllocates(t *testing.T) {
	r := NewRegistry(Refs{})
	ft, it, bt := Of[float64](r), Of[int](r), Of[bool](r)
	var buf [64]byte
	n := testing.AllocsPerRun(100, func() {
		f, i, b := 1.5, 7, true
		out, _ := ft.AppendSmall(buf[:0], &f)
		out, _ = it.AppendSmall(out, &i)
		out, _ = bt.AppendSmall(out, &b)
		if len(out) == 0 {
			t.Fatal("nothing was encoded")
		}
	})
	if n != 0 {
		t.Errorf("encoding scalars allocates %v times", n)
	}
	f := 2.5
	v := encode(t, r, f)
	if n := testing.AllocsPerRun(100, func() {
		if got, err := ft.Decode(v, false, nil); err != nil || got != f {
			t.Fatal(got, err)
		}
	}); n != 0 {
		t.Errorf("decoding a float64 allocates %v times", n)
	}
}
