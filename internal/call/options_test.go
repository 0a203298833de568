package call

import (
	"strconv"
	"testing"

	"pgregory.net/rapid"

	"mobula/internal/testkit"
)

func TestInternedOptionsAreBounded(t *testing.T) {
	f := New("test/interned", Shape{Kind: Plain, Returns: 1}, Defaults)
	for i := range 2 * maxInterned {
		o := f.Options()
		o.Label = strconv.Itoa(i)
		if got, _, err := f.Resolve(t.Context(), &o); err != nil || got.Label != o.Label {
			t.Fatal(got, err)
		}
	}
	if n := len(*f.options.known.Load()); n > maxInterned+1 {
		t.Errorf("%d options are kept", n)
	}
}

func TestPairsRoundTrip(t *testing.T) {
	testkit.Check(t, func(t *rapid.T) {
		m := rapid.MapOf(rapid.String(), rapid.Float64Range(0, 1e6)).Draw(t, "m")
		got := splitPairs(joinResources(m))
		if len(got) != len(m) {
			t.Fatalf("%v became %v", m, got)
		}
		for _, p := range got {
			if p.value != thousandths(m[p.name]) {
				t.Fatalf("%q: %d, want %v", p.name, p.value, m[p.name])
			}
		}
	})
}
