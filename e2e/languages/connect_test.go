package languages

import (
	"path/filepath"
	"testing"

	"mobula"
)

// Without an address a program joins the node of MOBULA_ADDRESS, else that in MOBULA_DIR; a directory is an address too.
func TestConnectFindsTheNode(t *testing.T) {
	c, err := mobula.Start(t.Context(), mobula.WithDir(t.TempDir()), mobula.WithStore(16<<20), mobula.WithCPUs(1))
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := c.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}()
	dir := filepath.Dir(c.Address())
	for _, how := range []struct{ name, value, address string }{
		{"MOBULA_ADDRESS", c.Address(), ""}, {"MOBULA_ADDRESS", dir, ""}, {"MOBULA_DIR", dir, ""}, {"MOBULA_DIR", "/no/such", dir},
	} {
		t.Run(how.name+"="+how.value, func(t *testing.T) {
			t.Setenv("MOBULA_ADDRESS", "")
			t.Setenv("MOBULA_DIR", "")
			t.Setenv(how.name, how.value)
			d, err := mobula.Connect(t.Context(), how.address)
			if err != nil {
				t.Fatal(err)
			}
			if d.Node() != c.Node() || d.Address() != c.Address() {
				t.Errorf("it joined %s at %s", d.Node(), d.Address())
			}
			if err := d.Close(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}
