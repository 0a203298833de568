package node

import (
	"errors"
	"testing"

	"mobula/internal/errs"
	"mobula/internal/trust"
)

// A node says where it listens, and where others reach it.
func TestWhereANodeListens(t *testing.T) {
	for _, c := range []struct {
		w            Wires
		listen, here string
		gcs          string
	}{
		{Wires{Listen: "127.0.0.1"}, "127.0.0.1:7710", "127.0.0.1:7710", "127.0.0.1:7712"},
		{Wires{Listen: "127.0.0.1:9000"}, "127.0.0.1:9000", "127.0.0.1:9000", "127.0.0.1:9002"},
		{Wires{Listen: "127.0.0.1:9000", GCSPort: 8000, Advertise: "node.example"}, "127.0.0.1:9000", "node.example:9000", "node.example:8000"},
		{Wires{Listen: "0.0.0.0:9000", Join: []string{"127.0.0.1:7710"}}, "0.0.0.0:9000", "127.0.0.1:9000", "127.0.0.1:9002"},
		{Wires{Join: []string{"127.0.0.1:7000"}}, "127.0.0.1:7710", "127.0.0.1:7710", "127.0.0.1:7712"},
		{Wires{Role: trust.Driver, Join: []string{"127.0.0.1:7000"}}, "127.0.0.1:0", "127.0.0.1:7710", "127.0.0.1:0"}, // until it listens
		{Wires{Listen: "[::1]:9000"}, "[::1]:9000", "[::1]:9000", "[::1]:9002"},
	} {
		a, err := c.w.addresses()
		if err != nil || a.listen != c.listen || a.shown(portNodes) != c.here || a.shown(portGCS) != c.gcs {
			t.Errorf("%+v: %+v, %v", c.w, a, err)
		}
	}
	for _, w := range []Wires{
		{Listen: "127.0.0.1:0"}, {Listen: "127.0.0.1:x"}, {Listen: "127.0.0.1:65535"}, {Listen: "127.0.0.1:9000", GossipPort: 9000}, {Listen: "::1"},
	} {
		if _, err := w.addresses(); !errors.Is(err, errs.ErrInvalid) {
			t.Errorf("%+v: %v", w, err)
		}
	}
}
