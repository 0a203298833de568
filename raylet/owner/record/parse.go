package record

import (
	"encoding/binary"
	"errors"
	"fmt"

	"mobula/internal/ids"
	"mobula/raylet/owner/actor"
	"mobula/raylet/owner/task"
	"mobula/wire"
)

// ErrBadRecord is wrapped by Parse.
var ErrBadRecord = errors.New("malformed record of the owner's log")

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
		r, err = parseNumbered(b)
	case recSubmit:
		r, err = parseSubmit(b)
	case recDone:
		r, err = parseDone(b)
	case recObject:
		r, err = parseObject(b)
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

func parseNumbered(b []byte) (*Options, error) {
	r := &Options{}
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

func parseSubmit(b []byte) (*Submit, error) {
	s := &wire.TaskSpec{}
	r := &Submit{Spec: s}
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
		case 14:
			s.Promises, err = f.numbers()
		case 15:
			id, err = f.task()
			r.Parent = ids.ActorID(id)
		case 16:
			r.Heir = f.n != 0
		case 17:
			r.Born = f.int()
		}
		return err
	})
	if err == nil && (s.ID.IsZero() || r.OptsNo == 0 && s.Opts == nil) {
		err = errors.New("no id or no options")
	}
	return r, err
}

func parseDone(b []byte) (*Done, error) {
	r := &Done{}
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
	if err == nil && (r.State != task.Finished && r.State != task.Failed || (r.State == task.Failed) != (r.Done.Err != nil)) {
		err = fmt.Errorf("a task cannot end as %v", r.State)
	}
	return r, err
}

func parseObject(b []byte) (*Object, error) {
	r := &Object{}
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

func parseRetry(b []byte) (*Retry, error) {
	r := &Retry{}
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
		case 5:
			r.Errors = uint32(f.n)
		case 6:
			r.Insist = f.n != 0
		}
		return err
	})
	return r, err
}

func parseForget(b []byte) (*Forget, error) {
	r := &Forget{}
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

func parseActor(b []byte) (*Actor, error) {
	r := &Actor{}
	err := eachField(b, func(f field) (err error) {
		var id ids.TaskID
		switch f.num {
		case 1:
			id, err = f.task()
			r.Actor = ids.ActorID(id)
		case 2:
			if r.State = actor.State(f.n); f.n > uint64(actor.Stopping) {
				err = fmt.Errorf("actor state %d is unknown", f.n)
			}
		case 3:
			r.Restarts = int32(f.int())
		case 9:
			r.Resets = int32(f.int())
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
		case 10:
			r.Stop = f.n != 0
		case 11:
			r.Hurt, err = parseError(f.b, 0)
		}
		return err
	})
	return r, err
}

func parsePacked(b []byte) (*Packed, error) {
	r := &Packed{}
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

func parseClosed(b []byte) (*Closed, error) {
	r := &Closed{}
	err := eachField(b, func(f field) (err error) {
		if f.num == 1 {
			r.Task, err = f.task()
		}
		return err
	})
	return r, err
}
