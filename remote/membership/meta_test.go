package membership

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"mobula/internal/ids"
)

// full is a node with much to say of itself.
func full() Node {
	return Node{
		Life: life(ids.MaxHome, 1<<63), Identity: strings.Repeat("f", 32), Role: Driver, Release: "v0.4.0-devel", Protocol: 1<<32 - 1,
		Addresses: Addresses{Message: "[2001:db8:aaaa:bbbb:cccc:dddd:eeee:ffff]:65535", Transfer: "node-17.rack-4.example.com:7002"},
	}
}

func TestMetadataKeepANode(t *testing.T) {
	for _, n := range []Node{full(), {Life: life(0, 1)}} {
		b, err := n.Meta()
		if err != nil {
			t.Fatal(err)
		}
		if got, err := ParseMeta(b); err != nil || got != n {
			t.Errorf("%+v, %v", got, err)
		}
		later := append([]byte{layout + 1}, b[1:]...)
		if got, err := ParseMeta(append(later, "what a later release appends"...)); err != nil || got != n {
			t.Errorf("of a later release: %+v, %v", got, err)
		}
		for cut := range b {
			if got, err := ParseMeta(b[:cut]); !errors.Is(err, ErrMeta) {
				t.Errorf("cut to %d bytes: %+v, %v", cut, got, err)
			}
		}
	}
}

func TestMetadataHaveALimit(t *testing.T) {
	n := full()
	n.Addresses.Message = strings.Repeat("x", MaxMeta)
	if b, err := n.Meta(); !errors.Is(err, ErrMeta) {
		t.Errorf("%d bytes, %v", len(b), err)
	}
}

func TestNames(t *testing.T) {
	for _, l := range []struct {
		name string
		ok   bool
	}{
		{Name(life(0, 1)), true}, {Name(life(ids.MaxHome, 1<<64-1)), true}, {"3", false}, {"3.0", false}, {"03.1", false}, {"3.1 ", false}, {"-3.1", false},
		{"134217728.1", false}, {"a.b", false}, {"", false},
	} {
		got, err := ParseName(l.name)
		if (err == nil) != l.ok || l.ok && Name(got) != l.name || !l.ok && !errors.Is(err, ErrMeta) {
			t.Errorf("%q: %v, %v", l.name, got, err)
		}
	}
}

func FuzzMeta(f *testing.F) {
	b, _ := full().Meta()
	f.Add(b)
	f.Fuzz(func(t *testing.T, b []byte) {
		n, err := ParseMeta(b)
		if err != nil {
			return
		}
		again, err := n.Meta()
		if err != nil { // a longer way to write a number was read
			return
		}
		if got, err := ParseMeta(again); err != nil || !reflect.DeepEqual(got, n) {
			t.Errorf("%+v, then %+v, %v", n, got, err)
		}
	})
}
