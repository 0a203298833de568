package ids

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"math/bits"
	"strconv"
	"strings"
)

// ErrBadID is wrapped by every parser of this package.
var ErrBadID = errors.New("malformed id")

// TaskID is 20 bytes: the job (8, big endian) and a 96-bit hash of the parent
// and its call counter. The hash distinguishes the tasks of one job: among 2^32 of them two share a hash with a
// probability of 10^-10.
type TaskID [TaskSize]byte

// jobSize is the length in bytes of the job that begins an id.
const jobSize = 8

// shortPrefix is how many bytes shorter ids were before release 0.5: their job was a number of 32 bits.
const shortPrefix = 4

// TaskSize and ObjectSize are the lengths in bytes of ids in messages, logs and values.
const (
	TaskSize   = 20
	ObjectSize = TaskSize + 4
)

// TaskOf reads the id of a task; not ok if b is not an id. It also reads ids of releases before 0.5.
func TaskOf(b []byte) (t TaskID, ok bool) {
	switch len(b) {
	case TaskSize:
		return TaskID(b), true
	case TaskSize - shortPrefix:
		return Widen([TaskSize - shortPrefix]byte(b)), true
	}
	return t, false
}

// ObjectOf reads the id of an object, as Append wrote it; not ok if b is not an id. It also reads ids of releases before
// 0.5.
func ObjectOf(b []byte) (o ObjectID, ok bool) {
	n := len(b) - 4
	if n < 0 {
		return o, false
	}
	o.Index = binary.BigEndian.Uint32(b[n:])
	o.Task, ok = TaskOf(b[:n])
	return o, ok
}

// Append writes the id in ObjectSize bytes.
func (o ObjectID) Append(b []byte) []byte {
	return binary.BigEndian.AppendUint32(append(b, o.Task[:]...), o.Index)
}

// Widen is the id that a release before 0.5 wrote in 16 bytes. Its home is the first of a cluster, and it derives
// the same children.
func Widen(short [16]byte) (t TaskID) {
	copy(t[shortPrefix:], short[:])
	return t
}

// Short is the task's id for a release before 0.5; not ok if that has none.
func (t TaskID) Short() (short [16]byte, ok bool) {
	copy(short[:], t[shortPrefix:])
	return short, [shortPrefix]byte(t[:shortPrefix]) == [shortPrefix]byte{}
}

// ActorID is the id of the task that creates the actor.
type ActorID TaskID

// ObjectID is the task that made the object and an index: 0 to n-1 for return values and stream items,
// PutBit|counter for objects that the task put.
type ObjectID struct {
	Task  TaskID
	Index uint32
}

// PutBit marks the index of an object that came from Put, not from a return.
const PutBit uint32 = 1 << 31

// RootTask is the id of a driver's own, implicit task. The nonce distinguishes the drivers of one job.
func RootTask(job JobID, nonce uint64) TaskID {
	var t TaskID
	binary.BigEndian.PutUint64(t[:jobSize], uint64(job))
	return Derive(t, nonce)
}

// Derive is the id of the n-th call made by parent. It costs some 20 ns. The upper half of
// the job takes no part in the hash.
func Derive(parent TaskID, n uint64) TaskID {
	const k0, k1, k2 = 0x9e3779b97f4a7c15, 0xd6e8feb86659fd93, 0xa0761d6478bd642f
	a := binary.LittleEndian.Uint64(parent[shortPrefix:])
	b := binary.LittleEndian.Uint64(parent[shortPrefix+8:])
	h1, l1 := bits.Mul64(a^k0^n, b^k1)
	h2, l2 := bits.Mul64(b^k2^bits.RotateLeft64(n, 32), a^k0+n)
	x, y := mix(h1^l2^n), mix(l1^h2^b)
	var t TaskID
	copy(t[:jobSize], parent[:jobSize])
	binary.LittleEndian.PutUint32(t[jobSize:], uint32(x))
	binary.LittleEndian.PutUint64(t[jobSize+4:], y^bits.RotateLeft64(x, 29))
	return t
}

// mix is the finaliser of SplitMix64.
func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// Bytes is the id as in values and answers: an id of the first home has the 16 bytes that release 0.4 reads too. TaskOf reads both.
func (t TaskID) Bytes() []byte {
	if short, ok := t.Short(); ok {
		return short[:]
	}
	return t[:]
}

// Trace is the id of the trace that the task begins if its caller has none: the id without its home. The hash is as good as random.
func (t TaskID) Trace() [16]byte { return [16]byte(t[shortPrefix:]) }

// In is the task's id with another job. Ids of what the task makes for that job derive from it.
func (t TaskID) In(job JobID) TaskID {
	binary.BigEndian.PutUint64(t[:jobSize], uint64(job))
	return t
}

// Job is the job that the task belongs to.
func (t TaskID) Job() JobID { return JobID(binary.BigEndian.Uint64(t[:jobSize])) }

// IsZero tells whether t names no task.
func (t TaskID) IsZero() bool { return t == TaskID{} }

// Return is the id of the task's i-th return value or stream item.
func (t TaskID) Return(i int) ObjectID { return ObjectID{Task: t, Index: uint32(i)} }

// Stream is the id of the handle of a stream itself: to release it gives up the items that were not taken.
func (t TaskID) Stream() ObjectID { return ObjectID{Task: t, Index: PutBit - 1} }

// Put is the id of the n-th object that the task puts.
func (t TaskID) Put(n uint32) ObjectID { return ObjectID{Task: t, Index: PutBit | n} }

// String prints 40 hexadecimal digits.
func (t TaskID) String() string { return hex.EncodeToString(t[:]) }

// String prints the creating task's id.
func (a ActorID) String() string { return TaskID(a).String() }

// IsZero tells whether a names no actor.
func (a ActorID) IsZero() bool { return a == ActorID{} }

// Job is the job that the actor belongs to.
func (a ActorID) Job() JobID { return TaskID(a).Job() }

// IsZero tells whether o names no object.
func (o ObjectID) IsZero() bool { return o == ObjectID{} }

// IsPut tells whether the object came from Put, and so has no lineage.
func (o ObjectID) IsPut() bool { return o.Index&PutBit != 0 }

// Job is the job that the object belongs to.
func (o ObjectID) Job() JobID { return o.Task.Job() }

// Compare orders objects by task, then by index.
func (o ObjectID) Compare(p ObjectID) int {
	return cmp.Or(bytes.Compare(o.Task[:], p.Task[:]), cmp.Compare(o.Index, p.Index))
}

// String prints the task, a colon and the index; "p" marks a put.
func (o ObjectID) String() string {
	if o.IsPut() {
		return o.Task.String() + ":p" + strconv.FormatUint(uint64(o.Index&^PutBit), 10)
	}
	return o.Task.String() + ":" + strconv.FormatUint(uint64(o.Index), 10)
}

// ParseTask reads the output of TaskID.String, also of releases before 0.5.
func ParseTask(s string) (TaskID, error) {
	var t TaskID
	raw, err := hex.DecodeString(s)
	if err != nil {
		return t, fmt.Errorf("task %q: %v: %w", s, err, ErrBadID)
	}
	t, ok := TaskOf(raw)
	if !ok {
		return t, fmt.Errorf("task %q: want %d hexadecimal digits: %w", s, 2*TaskSize, ErrBadID)
	}
	return t, nil
}

// ParseObject reads the output of ObjectID.String.
func ParseObject(s string) (ObjectID, error) {
	head, tail, ok := strings.Cut(s, ":")
	if !ok {
		return ObjectID{}, fmt.Errorf("object %q: want TASK:INDEX: %w", s, ErrBadID)
	}
	t, err := ParseTask(head)
	if err != nil {
		return ObjectID{}, err
	}
	digits, put := strings.CutPrefix(tail, "p")
	n, err := strconv.ParseUint(digits, 10, 31)
	if err != nil {
		return ObjectID{}, fmt.Errorf("object %q: index: %v: %w", s, err, ErrBadID)
	}
	if put {
		return t.Put(uint32(n)), nil
	}
	return t.Return(int(n)), nil
}
