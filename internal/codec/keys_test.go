package codec

import (
	"errors"
	"math"
	"math/big"
	"reflect"
	"strings"
	"testing"
	"time"

	"mobula/internal/errs"
	"mobula/wire"
)

// hiding is a key of which a part is not encoded.
type hiding struct {
	A int
	b int
}

// TestNoKeyOfAMapIsLost: keys that are encoded alike, and those that cannot be read, are refused with the key.
func TestNoKeyOfAMapIsLost(t *testing.T) {
	r := refRegistry()
	one, other := 1, 1
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for what, c := range map[string]struct {
		err  error
		want string
	}{
		"kinds of whole numbers": {encodeError(r, map[any]string{int(1): "a", int64(1): "b"}), "1 (int"},
		"kinds of real numbers":  {encodeError(r, map[any]string{float32(1.5): "a", 1.5: "b"}), "1.5 (float"},
		"inside another value":   {encodeError[any](r, []any{map[any]string{int(1): "a", uint8(1): "b"}}), "encoded alike"},
		"hidden fields":          {encodeError(r, map[hiding]int{{1, 1}: 1, {1, 2}: 2}), "codec.hiding"},
		"pointers":               {encodeError(r, map[*int]int{&one: 1, &other: 2}), "encoded alike"},
		"zones":                  {encodeError(r, map[time.Time]int{at: 1, at.In(time.FixedZone("also UTC", 0)): 2}), "encoded alike"},
		"an array in an any":     {encodeError(r, map[any]int{[2]int{1, 2}: 1}), "[1 2] ([2]int) could not be read"},
		"a struct in an any":     {encodeError(r, map[any]int{hiding{A: 1}: 1}), "could not be read"},
		"a large number in any":  {encodeError(r, map[any]int{uint64(math.MaxUint64): 1}), "18446744073709551615 (uint64) could not be read"},
		"a long key":             {encodeError(r, map[any]int{hiding{A: 1}: 1, [1]string{strings.Repeat("x", 1000)}: 1}), "could not be read"},
	} {
		if !errors.Is(c.err, errs.ErrNotEncodable) || !strings.Contains(c.err.Error(), c.want) || len(c.err.Error()) > 300 {
			t.Errorf("%s: %v", what, c.err)
		}
	}
}

// TestOddValuesHoldBothWays: what is encoded can be decoded, to the same.
func TestOddValuesHoldBothWays(t *testing.T) {
	type texts struct {
		S string
		M map[string]int
	}
	holds(t, texts{"a\xff", map[string]int{"\xfe": 1}}) // a Go string holds any bytes
	holds[any](t, []any{"\xff", map[any]any{"\xfe": "\xfd"}})
	holds(t, map[any]int{true: 1, nil: 2, "x": 3, int64(-1): 4, 1.5: 5})
	holds(t, map[hiding]int{{A: 1}: 1, {A: 2}: 2})
	holds(t, map[[2]int]string{{1, 2}: "a", {2, 1}: "b"})
	holds(t, map[time.Time]int{time.Date(2026, 1, 1, 0, 0, 0, 1, time.UTC): 1})
	holds(t, new(big.Int).Neg(new(big.Int).Lsh(big.NewInt(1), 64))) // the least that is not a big one, and one less
	holds(t, []*big.Int{new(big.Int).Lsh(big.NewInt(1), 64), big.NewInt(0), new(big.Int).Lsh(big.NewInt(-3), 1000)})
	holds[any](t, []any{new(big.Int).Lsh(big.NewInt(1), 70), uint64(math.MaxUint64), int64(math.MinInt64), math.Inf(-1)})
}

func holds[T any](t *testing.T, v T) {
	t.Helper()
	r := refRegistry()
	got, err := Of[T](r).Decode(encode(t, r, v), false, &binds{})
	if err != nil {
		t.Fatalf("%v: %v", v, err)
	}
	// Numbers in an any may come as another kind: a second way there and back is the same.
	again, err := Of[T](r).Decode(encode(t, r, got), false, &binds{})
	if err != nil || !reflect.DeepEqual(got, again) || reflect.ValueOf(&v).Elem().Kind() != reflect.Interface && !anyKeys(v) && !reflect.DeepEqual(v, got) {
		t.Errorf("%#v became %#v, then %#v: %v", v, got, again, err)
	}
}

func anyKeys(v any) bool { _, is := v.(map[any]int); return is }

// TestMapsInAnInterface: those with text keys are what programs write and assert, a map[string]any, at every level; others can only be a map[any]any.
func TestMapsInAnInterface(t *testing.T) {
	r := refRegistry()
	type config struct{ Extra any }
	in := map[string]any{"db": map[string]any{"host": "h", "ports": []any{map[string]any{}, map[any]any{int64(1): map[string]any{"a": "b"}}}}}
	if got, err := Of[any](r).Decode(encode[any](t, r, in), false, &binds{}); err != nil || !reflect.DeepEqual(got, any(in)) {
		t.Errorf("an any is %#v, %v", got, err)
	}
	if got, err := Of[map[string]any](r).Decode(encode(t, r, in), false, &binds{}); err != nil || !reflect.DeepEqual(got, in) {
		t.Errorf("a map is %#v, %v", got, err)
	}
	if got, err := Of[config](r).Decode(encode(t, r, config{in}), false, &binds{}); err != nil || !reflect.DeepEqual(got, config{in}) {
		t.Errorf("a field is %#v, %v", got, err)
	}
	mixed := map[any]any{"a": "b"}
	if got, err := Of[map[any]any](r).Decode(encode(t, r, mixed), false, &binds{}); err != nil || !reflect.DeepEqual(got, mixed) {
		t.Errorf("what is asked for as a map[any]any is %#v, %v", got, err)
	}
}

// TestNotANumberIsOne: a scalar keeps no payload of a NaN, an array all bits.
func TestNotANumberIsOne(t *testing.T) {
	r := refRegistry()
	odd := math.Float64frombits(0x7ff8_0000_0000_0123)
	alone, e1 := Of[float64](r).Decode(encode(t, r, odd), false, nil)
	list, e2 := Of[[]float64](r).Decode(encode(t, r, []float64{odd}), false, nil)
	keys, e3 := Of[map[float64]int](r).Decode(encode(t, r, map[float64]int{odd: 1, math.NaN(): 2}), false, nil)
	if err := errors.Join(e1, e2, e3); err != nil {
		t.Fatal(err)
	}
	if alone == alone || math.Float64bits(list[0]) != 0x7ff8_0000_0000_0123 || len(keys) != 2 {
		t.Errorf("%x, %x, %v", math.Float64bits(alone), math.Float64bits(list[0]), keys)
	}
}

// TestBadBytesOfOtherWriters: a key that comes twice, and one that cannot be a key, are errors.
func TestBadBytesOfOtherWriters(t *testing.T) {
	r := refRegistry()
	for data, want := range map[string]string{
		"\xa2\x01\x61a\x01\x61b": "duplicate",
		"\xa1\x81\x01\x01":       "key",
		"\xa1\xa0\x01":           "key",
		"\xc2\x81\x01":           "cbor", // a bignum of no bytes
	} {
		v := wire.Value{Meta: Header{Codec: CBOR, Name: "map[interface {}]interface {}"}.Append(nil), Data: []byte(data)}
		_, e1 := Of[map[any]any](r).Decode(v, false, &binds{})
		_, e2 := Of[any](r).Decode(v, false, &binds{})
		for _, err := range []error{e1, e2} {
			if !errors.Is(err, errs.ErrNotDecodable) || !strings.Contains(err.Error(), want) {
				t.Errorf("%x: %v", data, err)
			}
		}
	}
}
