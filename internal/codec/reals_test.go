package codec

import (
	"math"
	"math/big"
	"testing"
)

// A big.Float arrives as the same number, or is refused with its precision.
func TestBigFloatsHoldBothWays(t *testing.T) {
	type row struct{ F *big.Float }
	r := NewRegistry(Refs{})
	for _, f := range []*big.Float{
		new(big.Float), big.NewFloat(0.5), big.NewFloat(-3), big.NewFloat(math.Inf(-1)), big.NewFloat(math.Copysign(0, -1)), new(big.Float).SetPrec(64).SetRat(big.NewRat(1, 3)),
	} {
		got, err := Of[row](r).Decode(encode(t, r, row{f}), false, nil)
		if err != nil || got.F.Cmp(f) != 0 || got.F.Signbit() != f.Signbit() {
			t.Errorf("%v: got %v, %v", f, got.F, err)
		}
	}
	third := new(big.Float).SetPrec(200).SetRat(big.NewRat(1, 3))
	for _, f := range []*big.Float{big.NewFloat(1.1), third} {
		notEncodable(t, f, "big.Float", "as another number")
		notEncodable(t, *f, "big.Float")
		notEncodable(t, row{f}, "big.Float")
		notEncodable(t, map[string]any{"f": f}, "big.Float")
	}
	notEncodable(t, third, "200 bits")
	encode(t, r, row{})
}
