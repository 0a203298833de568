package codec

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/structpb"

	"mobula/internal/errs"
	"mobula/wire"
)

// FuzzDecode: whatever the bytes, a decoder gives a value or ErrNotDecodable, and what it gave
// can be encoded again, and decodes to what encodes to the same.
func FuzzDecode(f *testing.F) {
	r := refRegistry()
	seed := func(v wire.Value) { f.Add(v.Meta, v.Data) }
	seed(encode(f, r, 1.5))
	seed(encode(f, r, "text"))
	seed(encode(f, r, []float64{1, 2}))
	seed(encode(f, r, [][3]int16{{1, 2, 3}}))
	seed(encode(f, r, []bool{true}))
	seed(encode(f, r, holder{One: ref(1), Any: map[string]any{"x": ref(2)}}))
	seed(encode(f, r, point{Name: "p", Next: &point{}}))
	seed(encode[any](f, r, map[string]any{"a": []any{1, "b", 2.5}}))
	seed(encode(f, r, structpb.NewStringValue("v")))
	seed(encode(f, r, time.Unix(1, 2).UTC()))
	f.Add(Header{Codec: CBOR, Name: "time.Time"}.Append(nil), []byte("\xc1;00000000")) // a time of the year -110033701419
	for _, in := range readCorpus(f) {
		f.Add([]byte(in.meta), []byte(in.data))
	}
	f.Fuzz(func(t *testing.T, meta, data []byte) {
		v := wire.Value{Meta: meta, Data: data}
		fuzzOne[float64](t, r, v)
		fuzzOne[int16](t, r, v)
		fuzzOne[string](t, r, v)
		fuzzOne[[]float64](t, r, v)
		fuzzOne[[]bool](t, r, v)
		fuzzOne[[][3]int16](t, r, v)
		fuzzOne[holder](t, r, v)
		fuzzOne[point](t, r, v)
		fuzzOne[time.Time](t, r, v)
		fuzzOne[any](t, r, v)
		fuzzOne[*structpb.Value](t, r, v)
	})
}

func fuzzOne[T any](t *testing.T, r *Registry, v wire.Value) {
	got, err := Of[T](r).Decode(v, true, &binds{})
	if err != nil {
		if !errors.Is(err, errs.ErrNotDecodable) {
			t.Fatalf("%T: %v is not ErrNotDecodable", got, err)
		}
		return
	}
	e, err := Of[T](r).Encode(&got, nil, inlineMax)
	if err != nil {
		if errors.Is(err, errs.ErrNotEncodable) { // a protobuf without its type, say
			return
		}
		t.Fatalf("%T: decoded, but not encodable again: %v", got, err)
	}
	again, err := Of[T](r).Decode(e.data(t), false, &binds{})
	if err != nil {
		t.Fatalf("%T: the second decode fails: %v", got, err)
	}
	e2, err := Of[T](r).Encode(&again, nil, inlineMax)
	if err != nil {
		t.Fatalf("%T: the second encoding fails: %v", got, err)
	}
	if one, two := e.data(t), e2.data(t); !bytes.Equal(one.Data, two.Data) { // a big.Int of an any becomes an int64 if it is one
		t.Fatalf("%T: %q %q decodes to what encodes to %q %q", got, one.Meta, one.Data, two.Meta, two.Data)
	}
}

// FuzzHeader: a header that parses prints and, encoded again, parses to the same.
func FuzzHeader(f *testing.F) {
	f.Add(Header{Codec: Array, Elem: Float64, Dims: []uint64{0, 3}}.Append(nil))
	f.Add(Header{Codec: CBOR, Name: "main.Row"}.Append(nil))
	f.Fuzz(func(t *testing.T, meta []byte) {
		h, err := ParseHeader(meta)
		if err != nil {
			if !errors.Is(err, errs.ErrNotDecodable) {
				t.Fatalf("%v is not ErrNotDecodable", err)
			}
			return
		}
		again, err := ParseHeader(h.Append(nil))
		if err != nil && len(meta) <= wire.MaxMeta {
			t.Fatalf("%+v: %v", h, err)
		}
		if h.String() != again.String() && len(meta) <= wire.MaxMeta {
			t.Fatalf("%q became %q", h, again)
		}
	})
}
