package record

import (
	"errors"

	"google.golang.org/protobuf/encoding/protowire"

	"mobula/internal/errs"
)

// Errors are by hand: they nest, and how deep is bounded.

const maxErrDepth = 16

func appendError(b []byte, n protowire.Number, e *errs.Error, depth int) []byte {
	if e == nil || depth > maxErrDepth {
		return b
	}
	b, at := open(b, n)
	b = putUint(b, 1, uint64(e.Code))
	b = putString(b, 2, e.Msg)
	b = putString(b, 3, e.Name)
	b = putString(b, 4, e.Task)
	b = putString(b, 5, e.Stack)
	for _, cause := range e.Cause {
		b = appendError(b, 6, cause, depth+1)
	}
	b = putBytes(b, 7, e.Data)
	for i := range e.Refs {
		b = putObject(b, 8, &e.Refs[i])
	}
	return shut(b, at)
}

func parseError(b []byte, depth int) (*errs.Error, error) {
	if depth > maxErrDepth {
		return nil, errors.New("causes nest too deep")
	}
	e := &errs.Error{}
	err := eachField(b, func(f field) (err error) {
		switch f.num {
		case 1:
			e.Code = errs.Code(f.n)
		case 2:
			e.Msg = string(f.b)
		case 3:
			e.Name = string(f.b)
		case 4:
			e.Task = string(f.b)
		case 5:
			e.Stack = string(f.b)
		case 6:
			var cause *errs.Error
			if cause, err = parseError(f.b, depth+1); err == nil {
				e.Cause = append(e.Cause, cause)
			}
		case 7:
			e.Data = f.copied()
		case 8:
			err = f.object(more(&e.Refs))
		}
		return err
	})
	return e, err
}
