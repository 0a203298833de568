package codec

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"mobula/internal/errs"
	"mobula/wire"
)

// TestTimesHoldBothWays: what is encoded can be decoded, to the same; the rest is refused with its reason. Each goes alone, in what holds it, and as an any.
func TestTimesHoldBothWays(t *testing.T) {
	type row struct{ At *time.Time }
	r := NewRegistry(Refs{})
	for _, c := range []struct {
		at  time.Time
		why string // "": it holds
	}{
		{time.Time{}, ""},
		{time.Date(1, 1, 1, 0, 0, 0, 1, time.UTC).In(time.FixedZone("", -3600)), ""},
		{time.Date(0, 1, 1, 0, 0, 0, 0, time.UTC), ""},
		{time.Date(0, 1, 1, 0, 0, 0, 0, time.FixedZone("", 3600)), ""},
		{time.Date(9999, 12, 31, 23, 59, 59, 999_999_999, time.UTC), ""},
		{time.Date(9999, 12, 31, 23, 59, 59, 0, time.FixedZone("", -3600)), ""},
		{time.Date(2026, 1, 1, 0, 0, 0, 1, time.FixedZone("", -(day-60))), ""},
		{time.Date(-1, 12, 31, 23, 59, 59, 0, time.UTC), "of the years 0 to 9999"},
		{time.Date(0, 1, 1, 0, 0, 0, 0, time.UTC).In(time.FixedZone("", -3600)), "of the years 0 to 9999"},
		{time.Date(10_000, 1, 1, 0, 0, 0, 0, time.UTC), "of the years 0 to 9999"},
		{time.Unix(math.MaxInt64, 0), "9223372036854775807 s"},
		{time.Unix(math.MinInt64, 0), "-9223372036854775808 s"},
		{time.Date(2026, 1, 1, 0, 0, 0, 0, time.FixedZone("", day)), "take its UTC()"},
		{time.Date(1900, 1, 1, 0, 0, 0, 0, time.FixedZone("LMT", 1172)), "take its UTC()"},
	} {
		if c.why == "" {
			roundTrip(t, c.at)
			again(t, r, c.at)
			continue
		}
		for _, err := range []error{encodeError(r, c.at), encodeError(r, row{&c.at}), encodeError(r, map[string]time.Time{"at": c.at}), encodeError[any](r, []any{1, c.at})} {
			if !errors.Is(err, errs.ErrNotEncodable) || !strings.Contains(err.Error(), c.why) {
				t.Errorf("%v: %v", c.at, err)
			}
		}
	}
}

// again encodes and decodes a time, alone and in other values.
func again(t *testing.T, r *Registry, at time.Time) {
	t.Helper()
	roundTrip(t, at)
	list, e1 := Of[[]time.Time](r).Decode(encode(t, r, []time.Time{at}), false, nil)
	named, e2 := Of[map[string]time.Time](r).Decode(encode(t, r, map[string]time.Time{"at": at}), false, nil)
	held, e3 := Of[any](r).Decode(encode[any](t, r, map[string]any{"at": &at}), false, nil)
	if err := errors.Join(e1, e2, e3); err != nil {
		t.Fatal(err)
	}
	inside, _ := held.(map[string]any)["at"].(time.Time) // a zero time is null
	if !list[0].Equal(at) || !named["at"].Equal(at) || !inside.Equal(at) {
		t.Errorf("%v became %v, %v, %v", at, list, named, held)
	}
}

func encodeError[T any](r *Registry, v T) error {
	_, err := Of[T](r).Encode(&v, nil, inlineMax)
	return err
}

// TestTimesOfOtherWritersAreChecked: CBOR has times as numbers of seconds too, and text as others write it.
func TestTimesOfOtherWritersAreChecked(t *testing.T) {
	r := NewRegistry(Refs{})
	for _, c := range []struct {
		data string
		want int64 // seconds from 1970
		why  string
	}{
		{"\xc1\x00", 0, ""},
		{"\xc1\x3a\x87\x65\x43\x20", -2271560481, ""},                 // 1898: many zones were not whole minutes from UTC
		{"\xc1\x3b\x00\x00\x00\x0e\x79\x74\x7b\xff", firstSecond, ""}, // the year before in zones west of Greenwich, where the test may run
		{"\xc1\x1b\x00\x00\x00\x3a\xff\xf4\x41\x7f", lastSecond, ""},  // the year after east of it
		{"\xc0\x78\x192026-01-01T00:00:00+24:00", 1767139200, ""},
		{"\xc1;00000000", 0, "-3472328296227680305 s"},
		{"\xc1\x1b\x7f\xff\xff\xff\xff\xff\xff\xff", 0, "9223372036854775807 s"},
		{"\xc1\xfb\x43\xe0\x00\x00\x00\x00\x00\x00", 0, "years 0 to 9999"},              // 2 to the 63rd
		{"\xc1\xfb\x7e\x37\xe4\x3c\x88\x00\x75\x9c", 0, "overflows"},                    // 1e300
		{"\xc0\x78\x1c1890-01-01T00:00:00+00:19:32", 0, "1890-01-01T00:00:00+00:19:32"}, // as Python writes it
		{"\xc0\x6a2026-01-01", 0, "2026-01-01"},
	} {
		alone := wire.Value{Meta: Header{Codec: CBOR, Name: "time.Time"}.Append(nil), Data: []byte(c.data)}
		many := wire.Value{Meta: Header{Codec: CBOR, Name: "[]time.Time"}.Append(nil), Data: []byte("\x81" + c.data)}
		at, e1 := Of[time.Time](r).Decode(alone, false, nil)
		list, e2 := Of[[]time.Time](r).Decode(many, false, nil)
		dyn, e3 := Of[any](r).Decode(many, false, nil)
		if c.why == "" {
			if e := errors.Join(e1, e2, e3); e != nil || at.Unix() != c.want || !list[0].Equal(at) || !dyn.([]any)[0].(time.Time).Equal(at) {
				t.Errorf("%x: %v %v %v, %v", c.data, at, list, dyn, e)
			}
			again(t, r, at)
			again(t, r, list[0])
			continue
		}
		for _, err := range []error{e1, e2, e3} {
			if !errors.Is(err, errs.ErrNotDecodable) || !strings.Contains(err.Error(), c.why) {
				t.Errorf("%x: %v", c.data, err)
			}
		}
	}
}
