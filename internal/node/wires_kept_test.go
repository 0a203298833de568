package node

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"mobula/internal/errs"
	"mobula/internal/trust"
)

// A start that does not say where the node listens has it listen where it did. One that says so says all of it.
func TestANodeListensWhereItDid(t *testing.T) {
	dir := t.TempDir()
	for _, c := range []struct {
		told                    Wires
		listen, gossip, reached string
	}{
		{Wires{Join: []string{"127.0.0.1:7000"}}, "127.0.0.1:7710", "127.0.0.1:7711", "127.0.0.1:7710"},
		{Wires{}, "127.0.0.1:7710", "127.0.0.1:7711", "127.0.0.1:7710"},
		{Wires{GossipPort: 8000}, "127.0.0.1:7710", "127.0.0.1:8000", "127.0.0.1:7710"},
		{Wires{Role: trust.Driver}, "127.0.0.1:0", "127.0.0.1:8000", "127.0.0.1:0"}, // a program's node takes any port
		{Wires{}, "127.0.0.1:7710", "127.0.0.1:8000", "127.0.0.1:7710"},
		{Wires{Listen: "127.0.0.2:9000", Advertise: "node.example"}, "127.0.0.2:9000", "127.0.0.2:9001", "node.example:9000"},
		{Wires{}, "127.0.0.2:9000", "127.0.0.2:9001", "node.example:9000"},
		{Wires{Listen: "127.0.0.3"}, "127.0.0.3:7710", "127.0.0.3:7711", "127.0.0.3:7710"},
	} {
		w, err := c.told.kept(dir)
		if err != nil {
			t.Fatal(err)
		}
		if w.anyPort() {
			if err := w.keep(dir); err != nil {
				t.Error(err)
			}
			continue
		}
		a, err := w.addresses()
		if err != nil || a.listen != c.listen || a.gossip != c.gossip || a.shown(portNodes) != c.reached {
			t.Errorf("told %+v: %+v, %v", c.told, a, err)
		}
		if err := w.keep(dir); err != nil {
			t.Error(err)
		}
	}
	for text, want := range map[string]error{"{": errs.ErrInvalid, `{"form": 9}`: errs.ErrVersion} {
		if err := os.WriteFile(filepath.Join(dir, wiresName), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := (Wires{}).kept(dir); !errors.Is(err, want) {
			t.Errorf("%s: %v", text, err)
		}
	}
}
