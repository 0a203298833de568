package record

import (
	"errors"

	"mobula/internal/errs"
	"mobula/internal/protofield"
)

// Errors are by hand: they nest, and how deep is bounded.

const maxErrDepth = 16

func appendError(b []byte, n protofield.Number, e *errs.Error) []byte { return appendCause(b, n, e, 0) }

func appendCause(b []byte, n protofield.Number, e *errs.Error, depth int) []byte {
	if e == nil || depth > maxErrDepth {
		return b
	}
	b, at := protofield.Open(b, n)
	b = protofield.PutUint(b, 1, uint64(e.Code))
	b = protofield.PutString(b, 2, e.Msg)
	b = protofield.PutString(b, 3, e.Name)
	b = protofield.PutString(b, 4, e.Task)
	b = protofield.PutString(b, 5, e.Stack)
	for _, cause := range e.Cause {
		b = appendCause(b, 6, cause, depth+1)
	}
	b = protofield.PutBytes(b, 7, e.Data)
	for i := range e.Refs {
		b = protofield.PutObject(b, 8, &e.Refs[i])
	}
	return protofield.Shut(b, at)
}

func readError(b []byte) (*errs.Error, error) { return readCause(b, 0) }

func readCause(b []byte, depth int) (*errs.Error, error) {
	if depth > maxErrDepth {
		return nil, errors.New("causes nest too deep")
	}
	e := &errs.Error{}
	err := protofield.Each(b, func(f protofield.Field) (err error) {
		switch f.Num {
		case 1:
			e.Code = errs.Code(f.N)
		case 2:
			e.Msg = string(f.B)
		case 3:
			e.Name = string(f.B)
		case 4:
			e.Task = string(f.B)
		case 5:
			e.Stack = string(f.B)
		case 6:
			var cause *errs.Error
			if cause, err = readCause(f.B, depth+1); err == nil {
				e.Cause = append(e.Cause, cause)
			}
		case 7:
			e.Data = f.Copied()
		case 8:
			err = f.Object(protofield.More(f, &e.Refs))
		}
		return err
	})
	return e, err
}
