package record

import (
	"errors"
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/wire"
)

// field is one field of a message being read.
type field struct {
	num protowire.Number
	n   uint64 // of a varint
	b   []byte // of bytes
}

// eachField calls f for every field of b. Fields of unknown numbers are f's to ignore.
func eachField(b []byte, f func(field) error) error {
	for len(b) > 0 {
		num, typ, n := protowire.ConsumeTag(b)
		if n < 0 {
			return protowire.ParseError(n)
		}
		b = b[n:]
		fd := field{num: num}
		switch typ {
		case protowire.VarintType:
			fd.n, n = protowire.ConsumeVarint(b)
		case protowire.BytesType:
			fd.b, n = protowire.ConsumeBytes(b)
		default:
			return fmt.Errorf("field %d has the wire type %d", num, typ)
		}
		if n < 0 {
			return protowire.ParseError(n)
		}
		b = b[n:]
		if err := f(fd); err != nil {
			return err
		}
	}
	return nil
}

func (f field) int() int64 { return protowire.DecodeZigZag(f.n) }

func (f field) copied() []byte { return append([]byte(nil), f.b...) }

func (f field) task() (ids.TaskID, error) {
	id, ok := ids.TaskOf(f.b)
	if !ok {
		return id, fmt.Errorf("a task's id of %d bytes", len(f.b))
	}
	return id, nil
}

// numbers reads a packed list.
func (f field) numbers() (out []uint32, err error) {
	for b := f.b; len(b) > 0; {
		v, n := protowire.ConsumeVarint(b)
		if n < 0 {
			return nil, protowire.ParseError(n)
		}
		out, b = append(out, uint32(v)), b[n:]
	}
	return out, nil
}

func (f field) object() (ids.ObjectID, error) {
	id, ok := ids.ObjectOf(f.b)
	if !ok {
		return id, fmt.Errorf("an object's id of %d bytes", len(f.b))
	}
	return id, nil
}

func parseOptions(b []byte) (*wire.TaskOptions, error) {
	o := &wire.TaskOptions{}
	err := eachField(b, func(f field) (err error) {
		switch f.num {
		case 1:
			o.Func = string(f.b)
		case 2:
			o.NumReturns = int32(f.int())
		case 3:
			var r wire.Resource
			r.Name, r.Amount, err = parseAmount(f.b)
			o.Resources = append(o.Resources, r)
		case 4:
			o.MaxRetries = int32(f.int())
		case 5:
			o.RetryExceptions = f.n != 0
		case 6:
			o.Isolate = f.n != 0
		case 7:
			o.Backpressure = int32(f.int())
		case 8:
			o.Spread = f.n != 0
		case 9:
			o.Label = string(f.b)
		case 10:
			o.MaxRestarts = int32(f.int())
		case 11:
			o.MaxTaskRetries = int32(f.int())
		case 12:
			o.MaxConcurrency = int32(f.int())
		case 13:
			var g wire.ConcurrencyGroup
			var n int64
			g.Name, n, err = parseAmount(f.b)
			g.Max = int32(n)
			o.Groups = append(o.Groups, g)
		case 14:
			o.MaxPendingCalls = int32(f.int())
		case 15:
			o.Namespace = string(f.b)
		case 16:
			o.ActorName = string(f.b)
		case 17:
			o.Detached = f.n != 0
		case 18:
			o.GetIfExists = f.n != 0
		case 19:
			o.Group = string(f.b)
		case 20:
			if f.n != 0 && o.Resources == nil {
				o.Resources = []wire.Resource{}
			}
		case 21:
			o.ExceptionRetries = int32(f.int())
		case 22:
			o.RetryOnly = string(f.b)
		case 23:
			o.Process = string(f.b)
		case 24:
			o.Escalate = f.n != 0
		}
		return err
	})
	return o, err
}

func parseAmount(b []byte) (name string, n int64, err error) {
	err = eachField(b, func(f field) error {
		switch f.num {
		case 1:
			name = string(f.b)
		case 2:
			n = f.int()
		}
		return nil
	})
	return name, n, err
}

func parseArg(b []byte) (a wire.Arg, err error) {
	err = eachField(b, func(f field) (err error) {
		if f.num == 1 {
			a.Ref, err = f.object()
			return err
		}
		return parseValue(&a.Value, f)
	})
	return a, err
}

func parseValue(v *wire.Value, f field) error {
	switch f.num {
	case 2:
		v.Meta = f.copied()
	case 3:
		v.Data = f.copied()
	case 4:
		id, err := f.object()
		if err != nil {
			return err
		}
		v.Refs = append(v.Refs, id)
	}
	return nil
}

func parseResult(b []byte) (r wire.Result, err error) {
	err = eachField(b, func(f field) (err error) {
		switch f.num {
		case 1:
			if r.Kind = wire.ResultKind(f.n); f.n > uint64(wire.ResultError) {
				err = fmt.Errorf("result kind %d is unknown", f.n)
			}
		case 5:
			r.Size = f.n
		case 6:
			r.Err, err = parseError(f.b, 0)
		default:
			err = parseValue(&r.Value, f)
		}
		return err
	})
	return r, err
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
			var id ids.ObjectID
			if id, err = f.object(); err == nil {
				e.Refs = append(e.Refs, id)
			}
		}
		return err
	})
	return e, err
}
