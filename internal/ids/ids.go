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

// JobID numbers a driver's job within a node's lifetime on disk; 0 is no job.
type JobID uint32

// String prints the job as decimal.
func (j JobID) String() string { return strconv.FormatUint(uint64(j), 10) }

// ClientID names one connection of a driver or worker process to a node. It is
// never reused within a node, restarts included; 0 is no client.
type ClientID uint64

// String prints the client as decimal.
func (c ClientID) String() string { return strconv.FormatUint(uint64(c), 10) }

// LeaseID names one lease of a worker slot; never reused within a node.
type LeaseID uint64

// TaskID is 16 bytes: the job (4, big endian) and a 96-bit hash of the parent
// and its call counter.
type TaskID [16]byte

// ActorID is the id of the task that creates the actor.
type ActorID TaskID

// ObjectID is the task that made the object and its index: 0 to n-1 for return
// values and stream items, PutBit|counter for what the task put.
type ObjectID struct {
	Task  TaskID
	Index uint32
}

// PutBit marks the index of an object that came from Put, not from a return.
const PutBit uint32 = 1 << 31

// RootTask is the id of a driver's own, implicit task. The nonce tells apart the
// drivers of one job.
func RootTask(job JobID, nonce uint64) TaskID {
	var t TaskID
	binary.BigEndian.PutUint32(t[:4], uint32(job))
	return Derive(t, nonce)
}

// Derive is the id of the n-th call made by parent. It costs some 20 ns.
func Derive(parent TaskID, n uint64) TaskID {
	const k0, k1, k2 = 0x9e3779b97f4a7c15, 0xd6e8feb86659fd93, 0xa0761d6478bd642f
	a := binary.LittleEndian.Uint64(parent[:8])
	b := binary.LittleEndian.Uint64(parent[8:])
	h1, l1 := bits.Mul64(a^k0^n, b^k1)
	h2, l2 := bits.Mul64(b^k2^bits.RotateLeft64(n, 32), a^k0+n)
	x, y := mix(h1^l2^n), mix(l1^h2^b)
	var t TaskID
	copy(t[:4], parent[:4])
	binary.LittleEndian.PutUint32(t[4:8], uint32(x))
	binary.LittleEndian.PutUint64(t[8:], y^bits.RotateLeft64(x, 29))
	return t
}

// mix is the finaliser of SplitMix64.
func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// In is the task's namesake in a job. What it makes has its id from that where it makes it for that job.
func (t TaskID) In(job JobID) TaskID {
	binary.BigEndian.PutUint32(t[:4], uint32(job))
	return t
}

// Job is the job that the task belongs to.
func (t TaskID) Job() JobID { return JobID(binary.BigEndian.Uint32(t[:4])) }

// IsZero tells whether t names no task.
func (t TaskID) IsZero() bool { return t == TaskID{} }

// Return is the id of the task's i-th return value or stream item.
func (t TaskID) Return(i int) ObjectID { return ObjectID{Task: t, Index: uint32(i)} }

// Stream is the id of the handle on a stream itself: releasing it gives up the items
// that were not taken.
func (t TaskID) Stream() ObjectID { return ObjectID{Task: t, Index: PutBit - 1} }

// Put is the id of the n-th object that the task puts.
func (t TaskID) Put(n uint32) ObjectID { return ObjectID{Task: t, Index: PutBit | n} }

// String prints 32 hexadecimal digits.
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

// ParseTask reads what TaskID.String printed.
func ParseTask(s string) (TaskID, error) {
	var t TaskID
	if len(s) != 2*len(t) {
		return t, fmt.Errorf("task %q: want %d hexadecimal digits: %w", s, 2*len(t), ErrBadID)
	}
	if _, err := hex.Decode(t[:], []byte(s)); err != nil {
		return TaskID{}, fmt.Errorf("task %q: %v: %w", s, err, ErrBadID)
	}
	return t, nil
}

// ParseObject reads what ObjectID.String printed.
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
