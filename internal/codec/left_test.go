package codec

import (
	"fmt"
	"net/netip"
	"testing"
	"time"
)

type (
	stamped struct {
		time.Time
		Zone string
	}
	alone struct {
		time.Time
		zone string
	}
	both struct {
		time.Time
		netip.Addr
	}
	own struct {
		time.Time
		Zone string
	}
	generic[T any] struct {
		time.Time
		Of T
	}
	Left  struct{ ID int }
	Right struct{ ID int }
	twins struct {
		Left
		Right
	}
	shadows struct {
		Left
		ID int
	}
	apart struct {
		Left
		ID int `cbor:"own"`
	}
	withheld struct {
		Left
		ID int `cbor:"-"`
	}
	tags struct {
		A int `json:"x"`
		B int `cbor:"x"`
	}
	cases struct {
		A int `json:"id"`
		B int `json:"ID"`
	}
	pair   struct{ X, Y int }
	byAddr struct {
		*pair
		Name string
	}
	byValue struct {
		pair
		Name string
	}
	Chain struct {
		*Chain
		N int
	}
)

func (o own) MarshalText() ([]byte, error)     { return fmt.Appendf(nil, "%d %s", o.Unix(), o.Zone), nil }
func (o *own) UnmarshalText(text []byte) error { return o.scan(text) }
func (o own) MarshalBinary() ([]byte, error)   { return o.MarshalText() }
func (o *own) UnmarshalBinary(b []byte) error  { return o.scan(b) }

func (o *own) scan(text []byte) error {
	var at int64
	_, err := fmt.Sscanf(string(text), "%d %s", &at, &o.Zone)
	o.Time = time.Unix(at, 0).UTC()
	return err
}

func (g generic[T]) MarshalBinary() ([]byte, error) { return fmt.Appendf(nil, "%v", g.Of), nil }
func (g *generic[T]) UnmarshalBinary(b []byte) error {
	_, err := fmt.Sscan(string(b), &g.Of)
	return err
}

// A field that would not be there on the other side is named when the value is encoded.
func TestNoFieldIsLeftOut(t *testing.T) {
	at := time.Unix(1e9, 0).UTC()
	notEncodable(t, stamped{at, "CET"}, "stamped.Zone", "embedded field Time")
	notEncodable(t, &stamped{at, "CET"}, "stamped.Zone")
	notEncodable(t, []any{stamped{at, "CET"}}, "stamped.Zone")
	notEncodable(t, both{at, netip.Addr{}}, "both.Time", "give the field a name")
	notEncodable(t, twins{Left{1}, Right{2}}, "twins.Right.ID", ".Left.ID", `"ID"`)
	notEncodable(t, shadows{Left{1}, 2}, "shadows.ID", ".Left.ID")
	notEncodable(t, tags{1, 2}, "tags.B", ".A", `"x"`)
	notEncodable(t, byAddr{&pair{1, 2}, "p"}, "byAddr.pair", "embed the struct")
	roundTrip(t, alone{at, ""})
	roundTrip(t, own{at, "CET"})
	roundTrip(t, generic[int]{Of: 3})
	roundTrip(t, apart{Left{1}, 2})
	roundTrip(t, withheld{Left: Left{1}})
	roundTrip(t, cases{1, 2})
	roundTrip(t, byValue{pair{1, 2}, "v"})
	roundTrip(t, Chain{N: 3})
}
