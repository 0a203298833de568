package record

import (
	"encoding/binary"

	"google.golang.org/protobuf/encoding/protowire"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/raylet/owner/task"
	"mobula/wire"
)

// The encoding of a record: its kind in one byte, its number as a varint, then a protobuf
// message. Absent fields are zero. Nested messages have a length of four bytes, which a varint
// may have.

type recordKind byte

const (
	recOptions recordKind = iota + 1
	recSubmit
	recDone
	recObject
	recRetry
	recForget
	recActor
	recPacked
	recClosed
)

func putUint(b []byte, n protowire.Number, v uint64) []byte {
	if v == 0 {
		return b
	}
	return protowire.AppendVarint(protowire.AppendTag(b, n, protowire.VarintType), v)
}

func putInt(b []byte, n protowire.Number, v int64) []byte {
	return putUint(b, n, protowire.EncodeZigZag(v))
}

func putBool(b []byte, n protowire.Number, v bool) []byte {
	return putUint(b, n, uint64(bit(v)))
}

func putBytes(b []byte, n protowire.Number, v []byte) []byte {
	if len(v) == 0 {
		return b
	}
	return protowire.AppendBytes(protowire.AppendTag(b, n, protowire.BytesType), v)
}

func putString(b []byte, n protowire.Number, v string) []byte {
	if v == "" {
		return b
	}
	return protowire.AppendString(protowire.AppendTag(b, n, protowire.BytesType), v)
}

func putTask(b []byte, n protowire.Number, id ids.TaskID) []byte {
	if id.IsZero() {
		return b
	}
	return append(append(protowire.AppendTag(b, n, protowire.BytesType), byte(len(id))), id[:]...)
}

func putObject(b []byte, n protowire.Number, id ids.ObjectID) []byte {
	return id.Append(append(protowire.AppendTag(b, n, protowire.BytesType), byte(ids.ObjectSize)))
}

const nestedLen = 4 // bytes of a nested message's length

func open(b []byte, n protowire.Number) ([]byte, int) {
	b = append(protowire.AppendTag(b, n, protowire.BytesType), 0, 0, 0, 0)
	return b, len(b)
}

func shut(b []byte, at int) []byte {
	v := len(b) - at
	for i := range nestedLen {
		b[at-nestedLen+i] = byte(v>>(7*i)) | 0x80
	}
	b[at-1] &^= 0x80
	return b
}

func begin(b []byte, kind recordKind, seq uint64) []byte {
	return binary.AppendUvarint(append(b, byte(kind)), seq)
}

// AppendOptions writes options under the number that submissions refer to them by; opts is of EncodeOptions.
func AppendOptions(b []byte, seq uint64, no uint32, opts []byte) []byte {
	b = begin(b, recOptions, seq)
	b = putUint(b, 1, uint64(no))
	return putBytes(b, 2, opts)
}

// EncodeOptions writes options: equal ones give equal bytes.
func EncodeOptions(b []byte, o *wire.TaskOptions) []byte {
	b = putString(b, 1, o.Func)
	b = putInt(b, 2, int64(o.NumReturns))
	for i := range o.Resources {
		var at int
		b, at = open(b, 3)
		b = putString(b, 1, o.Resources[i].Name)
		b = putInt(b, 2, o.Resources[i].Amount)
		b = shut(b, at)
	}
	b = putInt(b, 4, int64(o.MaxRetries))
	b = putBool(b, 5, o.RetryExceptions)
	b = putBool(b, 6, o.Isolate)
	b = putInt(b, 7, int64(o.Backpressure))
	b = putBool(b, 8, o.Spread)
	b = putString(b, 9, o.Label)
	b = putInt(b, 10, int64(o.MaxRestarts))
	b = putInt(b, 11, int64(o.MaxTaskRetries))
	b = putInt(b, 12, int64(o.MaxConcurrency))
	for i := range o.Groups {
		var at int
		b, at = open(b, 13)
		b = putString(b, 1, o.Groups[i].Name)
		b = putInt(b, 2, int64(o.Groups[i].Max))
		b = shut(b, at)
	}
	b = putInt(b, 14, int64(o.MaxPendingCalls))
	b = putString(b, 15, o.Namespace)
	b = putString(b, 16, o.ActorName)
	b = putBool(b, 17, o.Detached)
	b = putBool(b, 18, o.GetIfExists)
	b = putString(b, 19, o.Group)
	b = putBool(b, 20, o.Resources != nil) // an empty list asks for nothing, none for the default
	b = putInt(b, 21, int64(o.ExceptionRetries))
	b = putString(b, 22, o.RetryOnly)
	b = putString(b, 23, o.Process)
	return putBool(b, 24, o.Escalate)
}

// AppendSubmit writes a submission.
func AppendSubmit(b []byte, seq uint64, s *wire.TaskSpec, of Submission) []byte {
	b = begin(b, recSubmit, seq)
	b = putTask(b, 1, s.ID)
	b = putTask(b, 2, s.Parent)
	b = putUint(b, 3, uint64(s.Kind))
	b = putUint(b, 4, uint64(of.OptsNo))
	if of.OptsNo == 0 {
		var at int
		b, at = open(b, 5)
		b = EncodeOptions(b, s.Opts)
		b = shut(b, at)
	}
	for i := range s.Args {
		a := &s.Args[i]
		var at int
		b, at = open(b, 6)
		if !a.Ref.IsZero() {
			b = putObject(b, 1, a.Ref)
		}
		b = appendValue(b, &a.Value)
		b = shut(b, at)
	}
	b = putTask(b, 7, ids.TaskID(s.Actor))
	b = putUint(b, 8, s.Seq)
	b = putInt(b, 9, s.Deadline)
	if s.Trace != (wire.TraceContext{}) {
		b = putBytes(b, 10, s.Trace.TraceID[:])
		b = putBytes(b, 11, s.Trace.SpanID[:])
		b = putUint(b, 12, uint64(s.Trace.Flags))
	}
	b = putString(b, 13, s.Callsite)
	b = putTask(b, 15, ids.TaskID(of.Parent))
	b = putBool(b, 16, of.Heir)
	b = putInt(b, 17, of.Born)
	if len(s.Promises) == 0 {
		return b
	}
	b, at := open(b, 14)
	for _, n := range s.Promises {
		b = protowire.AppendVarint(b, uint64(n))
	}
	return shut(b, at)
}

// appendValue writes a value as the fields 2 to 4 of the message around it.
func appendValue(b []byte, v *wire.Value) []byte {
	b = putBytes(b, 2, v.Meta)
	b = putBytes(b, 3, v.Data)
	for _, id := range v.Refs {
		b = putObject(b, 4, id)
	}
	return b
}

func appendResult(b []byte, r *wire.Result) []byte {
	b = putUint(b, 1, uint64(r.Kind))
	b = appendValue(b, &r.Value)
	b = putUint(b, 5, r.Size)
	return appendError(b, 6, r.Err, 0)
}

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
	for _, id := range e.Refs {
		b = putObject(b, 8, id)
	}
	return shut(b, at)
}

// AppendDone writes a task's end: its results, or its error.
func AppendDone(b []byte, seq uint64, d *wire.Done, st task.State) []byte {
	b = begin(b, recDone, seq)
	b = putTask(b, 1, d.Task)
	b = putUint(b, 2, uint64(d.Attempt))
	b = putUint(b, 3, uint64(st))
	b = putUint(b, 4, uint64(d.Items))
	for i := range d.Results {
		var at int
		b, at = open(b, 5)
		b = appendResult(b, &d.Results[i])
		b = shut(b, at)
	}
	return appendError(b, 6, d.Err, 0)
}

// AppendObject writes an object that is not resolved by its task's end: a put, an early seal, a stream's item.
func AppendObject(b []byte, seq uint64, id ids.ObjectID, attempt uint32, r *wire.Result) []byte {
	b = begin(b, recObject, seq)
	b = putObject(b, 1, id)
	b = putUint(b, 2, uint64(attempt))
	b, at := open(b, 3)
	b = appendResult(b, r)
	return shut(b, at)
}

// AppendRetry writes that an attempt was charged, or is being cancelled.
func AppendRetry(b []byte, seq uint64, r *Retry) []byte {
	b = begin(b, recRetry, seq)
	b = putTask(b, 1, r.Task)
	b = putUint(b, 2, uint64(r.Attempt))
	b = putUint(b, 3, uint64(r.Tries))
	b = putBool(b, 4, r.Cancelled)
	b = putUint(b, 5, uint64(r.Errors))
	return putBool(b, 6, r.Insist)
}

// AppendForget writes what nothing refers to any more; an Index of WholeTask stands for a task with its returns.
func AppendForget(b []byte, seq uint64, list []ids.ObjectID) []byte {
	b = begin(b, recForget, seq)
	for _, id := range list {
		b = putObject(b, 1, id)
	}
	return b
}

// AppendActor writes where an actor stands.
func AppendActor(b []byte, seq uint64, r *Actor) []byte {
	b = begin(b, recActor, seq)
	b = putTask(b, 1, ids.TaskID(r.Actor))
	b = putUint(b, 2, uint64(r.State))
	b = putInt(b, 3, int64(r.Restarts))
	b = putUint(b, 4, uint64(r.Lease))
	b = putUint(b, 5, uint64(r.Worker))
	b = putBool(b, 6, r.Named)
	b = putTask(b, 7, ids.TaskID(r.Alias))
	b = putInt(b, 9, int64(r.Resets))
	b = appendError(b, 8, r.Err, 0)
	b = putBool(b, 10, r.Stop)
	return appendError(b, 11, r.Hurt, 0)
}

// AppendPacked writes that a value lies in the store too.
func AppendPacked(b []byte, seq uint64, id ids.ObjectID, size uint64) []byte {
	b = begin(b, recPacked, seq)
	b = putObject(b, 1, id)
	return putUint(b, 2, size)
}

// AppendClosed writes that nobody reads a stream any more.
func AppendClosed(b []byte, seq uint64, id ids.TaskID) []byte {
	return putTask(begin(b, recClosed, seq), 1, id)
}

func bit(b bool) byte {
	if b {
		return 1
	}
	return 0
}
