package trust

import (
	"errors"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/internal/testkit"
)

func TestANameIsReadAsItWasWritten(t *testing.T) {
	testkit.Check(t, func(t *rapid.T) {
		n := Name{
			Cluster: rapid.StringMatching(`[a-z0-9]{1,63}`).Draw(t, "cluster"),
			Role:    rapid.SampledFrom([]Role{ControlPlane, Data, Driver}).Draw(t, "role"),
			Home:    ids.Home(rapid.Uint32Range(0, uint32(ids.MaxHome)).Draw(t, "home")),
			Epoch:   rapid.Uint64().Draw(t, "epoch"),
		}
		if got, err := ParseName(n.String()); err != nil || got != n {
			t.Fatalf("%v is read as %+v, %v", n, got, err)
		}
	})
}

// A certificate names its node in one way only: what merely looks like a name is none.
func TestWhatNamesNoNode(t *testing.T) {
	const good = "mobula://abc/data/3/7"
	if _, err := ParseName(good); err != nil {
		t.Fatal(err)
	}
	for _, s := range []string{
		"", "mobula://", "https://abc/data/3/7", "MOBULA://abc/data/3/7", "mobula://abc/data/3", good + "/", good + "/1", good + "?role=control-plane", good + "#",
		"mobula://Abc/data/3/7", "mobula://a.c/data/3/7", "mobula:///data/3/7", "mobula://abc//3/7", "mobula://abc/worker/3/7", "mobula://abc/Data/3/7",
		"mobula://abc/data/03/7", "mobula://abc/data/3/07", "mobula://abc/data/+3/7", "mobula://abc/data/-3/7", "mobula://abc/data/3/", "mobula://abc/data/134217728/7",
		"mobula://abc/data/3/18446744073709551616", "mobula://abc/authority", "mobula://" + strings.Repeat("a", 64) + "/data/3/7",
	} {
		if n, err := ParseName(s); !errors.Is(err, errs.ErrInvalid) {
			t.Errorf("%q names %+v, %v", s, n, err)
		}
	}
}

func FuzzParseName(f *testing.F) {
	f.Add("mobula://abc/data/3/7")
	f.Add("mobula://abc/control-plane/0/1?")
	f.Fuzz(func(t *testing.T, s string) {
		if n, err := ParseName(s); err == nil && (n.String() != s || !IsCluster(n.Cluster) || !n.Role.Known() || n.Home > ids.MaxHome) {
			t.Errorf("%q is read as %+v", s, n)
		}
	})
}
