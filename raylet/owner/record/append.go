package record

import (
	"encoding/binary"

	"mobula/internal/ids"
	"mobula/internal/protofield"
	"mobula/raylet/owner/task"
	"mobula/wire"
)

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
	recBorrower
)

func begin(b []byte, kind recordKind, seq uint64) []byte {
	return binary.AppendUvarint(append(b, byte(kind)), seq)
}

// AppendOptions writes options under the number that submissions refer to them by; opts is of EncodeOptions.
func AppendOptions(b []byte, seq uint64, no uint32, opts []byte) []byte {
	b = begin(b, recOptions, seq)
	b = protofield.PutUint(b, 1, uint64(no))
	return protofield.PutBytes(b, 2, opts)
}

// EncodeOptions writes options: equal ones give equal bytes.
func EncodeOptions(b []byte, o *wire.TaskOptions) []byte { return appendTaskOptions(b, o) }

// AppendSubmit writes a submission.
func AppendSubmit(b []byte, seq uint64, s *wire.TaskSpec, of Submission) []byte {
	return appendSubmit(begin(b, recSubmit, seq), &of, s)
}

// AppendDone writes a task's end: its results, or its error.
func AppendDone(b []byte, seq uint64, d *wire.Done, st task.State) []byte {
	return appendDone(begin(b, recDone, seq), st, d)
}

// AppendObject writes an object that is not resolved by its task's end: a put, an early seal, a stream's item; elsewhere as in Object.
func AppendObject(b []byte, seq uint64, id ids.ObjectID, attempt uint32, r *wire.Result, elsewhere uint64) []byte {
	return appendObject(begin(b, recObject, seq), &id, attempt, r, elsewhere)
}

// AppendRetry writes that an attempt was charged, or is being cancelled.
func AppendRetry(b []byte, seq uint64, r *Retry) []byte {
	return appendRetry(begin(b, recRetry, seq), r)
}

// AppendForget writes what nothing refers to any more; an Index of WholeTask stands for a task with its returns.
func AppendForget(b []byte, seq uint64, list []ids.ObjectID) []byte {
	return appendForget(begin(b, recForget, seq), &Forget{IDs: list})
}

// AppendActor writes where an actor stands.
func AppendActor(b []byte, seq uint64, r *Actor) []byte {
	return appendActor(begin(b, recActor, seq), r)
}

// AppendPacked writes that a value lies in the store too.
func AppendPacked(b []byte, seq uint64, id ids.ObjectID, size uint64) []byte {
	return appendPacked(begin(b, recPacked, seq), &Packed{ID: id, Size: size})
}

// AppendClosed writes that nobody reads a stream any more.
func AppendClosed(b []byte, seq uint64, id ids.TaskID) []byte {
	return appendClosed(begin(b, recClosed, seq), &Closed{Task: id})
}

// AppendBorrower writes that a job of another home may hold objects of this one.
func AppendBorrower(b []byte, seq uint64, job ids.JobID) []byte {
	return appendBorrower(begin(b, recBorrower, seq), &Borrower{Job: job})
}
