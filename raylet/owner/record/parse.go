package record

import (
	"encoding/binary"
	"errors"
	"fmt"

	"mobula/internal/protofield"
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

func parseBody(kind recordKind, b []byte) (Record, error) {
	switch kind {
	case recOptions:
		r := &Options{}
		err := protofield.Each(b, func(f protofield.Field) error {
			switch f.Num {
			case 1:
				r.No = uint32(f.N)
			case 2:
				r.Opts = &wire.TaskOptions{}
				return readTaskOptions(f.B, r.Opts)
			}
			return nil
		})
		if err == nil && (r.Opts == nil || r.No == 0) {
			err = errors.New("no options or no number")
		}
		return r, err
	case recSubmit:
		r := &Submit{Spec: &wire.TaskSpec{}}
		err := readSubmit(b, r)
		if err == nil && (r.Spec.ID.IsZero() || r.OptsNo == 0 && r.Spec.Opts == nil) {
			err = errors.New("no id or no options")
		}
		return r, err
	case recDone:
		r := &Done{}
		err := readDone(b, r)
		if err == nil && (r.State != task.Finished && r.State != task.Failed || (r.State == task.Failed) != (r.Done.Err != nil)) {
			err = fmt.Errorf("a task cannot end as %v", r.State)
		}
		return r, err
	case recObject:
		r := &Object{}
		err := readObject(b, r)
		if err == nil && (r.Result.Kind == wire.ResultError) != (r.Result.Err != nil) {
			err = errors.New("an error that is none")
		}
		return r, err
	case recRetry:
		r := &Retry{}
		return r, readRetry(b, r)
	case recForget:
		r := &Forget{}
		return r, readForget(b, r)
	case recActor:
		r := &Actor{}
		err := readActor(b, r)
		if err == nil && r.State > actor.Stopping {
			err = fmt.Errorf("actor state %d is unknown", r.State)
		}
		return r, err
	case recPacked:
		r := &Packed{}
		return r, readPacked(b, r)
	case recClosed:
		r := &Closed{}
		return r, readClosed(b, r)
	case recBorrower:
		r := &Borrower{}
		err := readBorrower(b, r)
		if err == nil && r.Job == 0 {
			err = errors.New("no job")
		}
		return r, err
	}
	return nil, errors.New("it is unknown")
}
