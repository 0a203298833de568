package codec

import (
	"bytes"
	"math"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"
)

type numbers struct {
	B    bool
	I    int
	I8   int8
	I16  int16
	Wait time.Duration
	U    uint
	U8   uint8
	U32  uint32
	Long uint64
	F    float32
	Fl   float64

	Seventh  int64 // its key takes 8 bytes, which is what is compared at once
	TheEight int32 // and here one more
}

type upside int

func (*upside) UnmarshalText([]byte) error { return nil }

// What is encoded by hand is a matter of the types of all fields.
func TestRecordTypes(t *testing.T) {
	type inner struct{ A int }
	for _, c := range []struct {
		v    any
		want bool
	}{
		{numbers{}, true},
		{inner{}, true},
		{struct{}{}, false},
		{struct{ A string }{}, false},
		{struct{ A, b int }{}, false},
		{struct{ inner }{}, false},
		{struct{ In inner }{}, false},
		{struct{ A *int }{}, false},
		{struct{ A complex128 }{}, false},
		{struct{ A uintptr }{}, false},
		{struct{ A upside }{}, false},
		{struct {
			A int `cbor:"a"`
		}{}, false},
		{struct {
			A int `json:"a,omitempty"`
		}{}, false},
		{time.Time{}, false},
		{reflect.New(reflect.StructOf([]reflect.StructField{{Name: "A" + strings.Repeat("a", recordMost), Type: reflect.TypeFor[int]()}})).Elem().Interface(), false},
	} {
		if p := NewRegistry(Refs{}).PlanOf(reflect.TypeOf(c.v)); (p.form == formRecord) != c.want {
			t.Errorf("%T is encoded by hand: %v", c.v, !c.want)
		}
	}
}

// What is encoded by hand is what the library writes, and is read as the library reads it, also where it was changed.
func TestRecordIsWhatTheLibraryWrites(t *testing.T) {
	r := NewRegistry(Refs{})
	p := Of[numbers](r)
	if p.form != formRecord {
		t.Fatal("it is not encoded by hand")
	}
	plain := *p.Plan
	plain.form, plain.parts = formCBOR, nil
	library := Type[numbers]{&plain}
	rnd := rand.New(rand.NewPCG(1, 2))
	bits := func() uint64 { return rnd.Uint64() >> rnd.IntN(64) }
	float := func() float64 {
		return [...]float64{0, math.Copysign(0, -1), 1.5, math.Inf(1), math.NaN(), math.MaxFloat64, math.SmallestNonzeroFloat32, math.Float64frombits(rnd.Uint64())}[rnd.IntN(8)]
	}
	same := func(a, b numbers) bool {
		return math.Float64bits(a.Fl) == math.Float64bits(b.Fl) && math.Float32bits(a.F) == math.Float32bits(b.F) && func() bool {
			a.F, a.Fl, b.F, b.Fl = 0, 0, 0, 0
			return a == b
		}()
	}
	for range 20_000 {
		v := numbers{rnd.IntN(2) == 0, int(bits()), int8(bits()), -int16(bits()), -time.Duration(bits()), uint(bits()), uint8(bits()), uint32(bits()), bits(), float32(float()), float(), int64(bits()), int32(bits())}
		got, err := p.Encode(&v, nil, 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		want, err := library.Encode(&v, nil, 1<<20)
		if err != nil || !bytes.Equal(got.Inline, want.Inline) || !bytes.Equal(got.Meta, want.Meta) {
			t.Fatalf("%+v is written as %x, by the library as %x, %v", v, got.Inline, want.Inline, err)
		}
		data := bytes.Clone(got.Inline)
		for range rnd.IntN(3) {
			switch i := rnd.IntN(len(data)); rnd.IntN(3) {
			case 0:
				data[i] = byte(rnd.Uint32())
			case 1:
				data = data[:i+1]
			default:
				data = append(data, data[i:]...)
			}
		}
		value := got.Value()
		value.Data = data
		a, aErr := p.Decode(value, false, nil)
		b, bErr := library.Decode(value, false, nil)
		if (aErr == nil) != (bErr == nil) || aErr == nil && !same(a, b) {
			t.Fatalf("%x is read as %+v, %v; by the library as %+v, %v", data, a, aErr, b, bErr)
		}
	}
}
