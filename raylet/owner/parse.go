package owner

import (
	"encoding/binary"
	"errors"
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/raylet/owner/actor"
	"mobula/raylet/owner/task"
	"mobula/wire"
)

// ErrBadRecord is wrapped by Parse.
var ErrBadRecord = errors.New("malformed record of the owner's log")

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

func (f field) task() (id ids.TaskID, err error) {
	if len(f.b) != len(id) {
		return id, fmt.Errorf("a task's id of %d bytes", len(f.b))
	}
	return ids.TaskID(f.b), nil
}

func (f field) object() (id ids.ObjectID, err error) {
	if len(f.b) != objectLen {
		return id, fmt.Errorf("an object's id of %d bytes", len(f.b))
	}
	return ids.ObjectID{Task: ids.TaskID(f.b[:16]), Index: binary.BigEndian.Uint32(f.b[16:])}, nil
}

// Parse reads a record and its number. What it gives shares nothing with b.
func Parse(b []byte) (Record, uint64, error) {
	if len(b) == 0 {
		return nil, 0, fmt.Errorf("%w: it is empty", ErrBadRecord)
	}
	kind := recordKind(b[0])
	seq, n := binary.Uvarint(b[1:])
	if n <= 0 {
		return nil, 0, fmt.Errorf("%w: it has no number", ErrBadRecord)
	}
	r, err := parseBody(kind, b[1+n:])
	if err != nil {
		return nil, 0, fmt.Errorf("%w: kind %d: %w", ErrBadRecord, kind, err)
	}
	return r, seq, nil
}

func parseBody(kind recordKind, b []byte) (r Record, err error) {
	switch kind {
	case recOptions:
		r, err = parseOptionsRecord(b)
	case recSubmit:
		r, err = parseSubmit(b)
	case recDone:
		r, err = parseDone(b)
	case recObject:
		r, err = parseObjectRecord(b)
	case recRetry:
		r, err = parseRetry(b)
	case recForget:
		r, err = parseForget(b)
	case recActor:
		r, err = parseActor(b)
	case recPacked:
		r, err = parsePacked(b)
	case recClosed:
		r, err = parseClosed(b)
	default:
		err = errors.New("it is unknown")
	}
	return r, err
}

func parseOptionsRecord(b []byte) (*OptionsRecord, error) {
	r := &OptionsRecord{}
	err := eachField(b, func(f field) (err error) {
		switch f.num {
		case 1:
			r.No = uint32(f.n)
		case 2:
			r.Opts, err = parseOptions(f.b)
		}
		return err
	})
	if err == nil && (r.Opts == nil || r.No == 0) {
		err = errors.New("no options or no number")
	}
	return r, err
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

func parseSubmit(b []byte) (*SubmitRecord, error) {
	s := &wire.TaskSpec{}
	r := &SubmitRecord{Spec: s}
	err := eachField(b, func(f field) (err error) {
		var id ids.TaskID
		switch f.num {
		case 1:
			s.ID, err = f.task()
		case 2:
			s.Parent, err = f.task()
		case 3:
			if s.Kind = wire.TaskKind(f.n); f.n > uint64(wire.TaskActorCall) {
				err = fmt.Errorf("task kind %d is unknown", f.n)
			}
		case 4:
			r.OptsNo = uint32(f.n)
		case 5:
			s.Opts, err = parseOptions(f.b)
		case 6:
			var a wire.Arg
			a, err = parseArg(f.b)
			s.Args = append(s.Args, a)
		case 7:
			id, err = f.task()
			s.Actor = ids.ActorID(id)
		case 8:
			s.Seq = f.n
		case 9:
			s.Deadline = f.int()
		case 10:
			copy(s.Trace.TraceID[:], f.b)
		case 11:
			copy(s.Trace.SpanID[:], f.b)
		case 12:
			s.Trace.Flags = byte(f.n)
		case 13:
			s.Callsite = string(f.b)
		}
		return err
	})
	if err == nil && (s.ID.IsZero() || r.OptsNo == 0 && s.Opts == nil) {
		err = errors.New("no id or no options")
	}
	return r, err
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
		}
		return err
	})
	return e, err
}

func parseDone(b []byte) (*DoneRecord, error) {
	r := &DoneRecord{}
	err := eachField(b, func(f field) (err error) {
		switch f.num {
		case 1:
			r.Done.Task, err = f.task()
		case 2:
			r.Done.Attempt = uint32(f.n)
		case 3:
			r.State = task.State(f.n)
		case 4:
			r.Done.Items = uint32(f.n)
		case 5:
			var res wire.Result
			res, err = parseResult(f.b)
			r.Done.Results = append(r.Done.Results, res)
		case 6:
			r.Done.Err, err = parseError(f.b, 0)
		}
		return err
	})
	if err == nil && !(r.State == task.Finished && r.Done.Err == nil || r.State == task.Failed && r.Done.Err != nil) {
		err = fmt.Errorf("a task cannot end as %v", r.State)
	}
	return r, err
}

func parseObjectRecord(b []byte) (*ObjectRecord, error) {
	r := &ObjectRecord{}
	err := eachField(b, func(f field) (err error) {
		switch f.num {
		case 1:
			r.ID, err = f.object()
		case 2:
			r.Attempt = uint32(f.n)
		case 3:
			r.Result, err = parseResult(f.b)
		}
		return err
	})
	if err == nil && (r.Result.Kind == wire.ResultNone || (r.Result.Kind == wire.ResultError) != (r.Result.Err != nil)) {
		err = errors.New("no result")
	}
	return r, err
}

func parseRetry(b []byte) (*RetryRecord, error) {
	r := &RetryRecord{}
	err := eachField(b, func(f field) (err error) {
		switch f.num {
		case 1:
			r.Task, err = f.task()
		case 2:
			r.Attempt = uint32(f.n)
		case 3:
			r.Tries = uint32(f.n)
		case 4:
			r.Cancelled = f.n != 0
		}
		return err
	})
	return r, err
}

func parseForget(b []byte) (*ForgetRecord, error) {
	r := &ForgetRecord{}
	err := eachField(b, func(f field) error {
		if f.num != 1 {
			return nil
		}
		id, err := f.object()
		r.IDs = append(r.IDs, id)
		return err
	})
	return r, err
}

func parseActor(b []byte) (*ActorRecord, error) {
	r := &ActorRecord{}
	err := eachField(b, func(f field) (err error) {
		var id ids.TaskID
		switch f.num {
		case 1:
			id, err = f.task()
			r.Actor = ids.ActorID(id)
		case 2:
			if r.State = actor.State(f.n); f.n > uint64(actor.Locating) {
				err = fmt.Errorf("actor state %d is unknown", f.n)
			}
		case 3:
			r.Restarts = int32(f.int())
		case 4:
			r.Lease = ids.LeaseID(f.n)
		case 5:
			r.Worker = ids.ClientID(f.n)
		case 6:
			r.Named = f.n != 0
		case 7:
			id, err = f.task()
			r.Alias = ids.ActorID(id)
		case 8:
			r.Err, err = parseError(f.b, 0)
		}
		return err
	})
	return r, err
}

func parsePacked(b []byte) (*PackedRecord, error) {
	r := &PackedRecord{}
	err := eachField(b, func(f field) (err error) {
		switch f.num {
		case 1:
			r.ID, err = f.object()
		case 2:
			r.Size = f.n
		}
		return err
	})
	return r, err
}

func parseClosed(b []byte) (*ClosedRecord, error) {
	r := &ClosedRecord{}
	err := eachField(b, func(f field) (err error) {
		if f.num == 1 {
			r.Task, err = f.task()
		}
		return err
	})
	return r, err
}

// parseSpec reads a spec that was paged out.
func (c *Core) parseSpec(ev Fetched) (*wire.TaskSpec, *errs.Error) {
	if ev.Err != nil {
		return nil, logLost("a task", ev.Err)
	}
	r, _, err := Parse(ev.Record)
	if err != nil {
		return nil, logLost("a task", err)
	}
	s, ok := r.(*SubmitRecord)
	if !ok {
		return nil, logLost("a task", ErrBadRecord)
	}
	if s.OptsNo != 0 {
		s.Spec.Opts = c.optByNo[s.OptsNo]
	}
	if s.Spec.Opts == nil {
		return nil, logLost("a task's options", ErrBadRecord)
	}
	return s.Spec, nil
}

// findResult reads an object's value from the record that has it.
func findResult(ev Fetched, id ids.ObjectID) (*wire.Result, *errs.Error) {
	what := "object " + id.String()
	if ev.Err != nil {
		return nil, logLost(what, ev.Err)
	}
	r, _, err := Parse(ev.Record)
	if err != nil {
		return nil, logLost(what, err)
	}
	var res *wire.Result
	switch r := r.(type) {
	case *ObjectRecord:
		res = &r.Result
	case *DoneRecord:
		if r.Done.Task == id.Task && int(id.Index) < len(r.Done.Results) {
			res = &r.Done.Results[id.Index]
		}
	}
	if res == nil || res.Kind != wire.ResultInline {
		return nil, logLost(what, ErrBadRecord)
	}
	return res, nil
}
