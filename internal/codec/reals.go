package codec

import (
	"math/big"
	"reflect"

	"mobula/internal/errs"
)

// A big.Float is encoded as decimal text, the shortest that gives the number at its own precision. The text does not say the precision, and is read with 64
// bits, so it may be read as another number: 1.1 with 53 bits is not 1.1 with 64. Such a number is refused.

func collectReal(v reflect.Value) error {
	f := v.Interface().(big.Float)
	text, err := f.MarshalText()
	if err != nil {
		return errs.New(errs.CodeNotEncodable, "big.Float: %v", err)
	}
	var read big.Float
	if err := read.UnmarshalText(text); err != nil || read.Cmp(&f) != 0 {
		return errs.New(errs.CodeNotEncodable, "big.Float: %s, of %d bits, would be read as another number, since its text is read with 64 bits: "+
			"send what its GobEncode gives, a *big.Rat, or a number of 64 bits (SetPrec)", f.Text('g', 20), f.Prec())
	}
	return nil
}
