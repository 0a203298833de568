package internode

import (
	"fmt"

	"mobula/internal/errs"
	"mobula/internal/protofield"
	"mobula/wire"
)

// errNothingInside is of a message that should have another one inside.
var errNothingInside = errs.New(errs.CodeVersion, "no message inside, or one that version %d does not know", Version)

// malformed is an error of a payload, at a place; err says what is wrong there.
func malformed(err error, format string, args ...any) error {
	x := errs.From(err)
	code := errs.CodeProtocol
	if x.Code == errs.CodeVersion {
		code = x.Code
	}
	return errs.New(code, "%s: %s", fmt.Sprintf(format, args...), x.Msg)
}

// Errors are as in the local protocol, which bounds their texts and causes.

func appendError(b []byte, n protofield.Number, x *errs.Error) []byte {
	if x == nil {
		return b
	}
	b, at := protofield.Open(b, n)
	return protofield.Shut(wire.AppendError(b, x), at)
}

func readError(b []byte) (*errs.Error, error) { return wire.ParseError(b) }
