package wire

import (
	"slices"
	"strings"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"

	"mobula/internal/ids"
)

// Wire types, shifted in beside a field number to make a tag.
const (
	wtVarint  = 0
	wtFixed64 = 1
	wtBytes   = 2
)

// An encoder appends protobuf fields to b. Large byte strings may stay where they
// are: with alias > 0 a string of at least that many bytes is only noted in ext, and
// whoever writes b out splices it in. One goroutine at a time.
type encoder struct {
	b      []byte
	ext    []external
	extLen int           // bytes in ext
	alias  int           // 0: copy everything
	opts   *OptionsCache // nil: none
	bad    error         // the message must not be sent: the other side would refuse it
}

// external is a byte string that belongs at offset at of the encoder's b.
type external struct {
	at   int
	data []byte
}

// size is the number of bytes encoded so far.
func (e *encoder) size() int { return len(e.b) + e.extLen }

// insert opens a gap of n bytes at offset at. A spliced string at at itself stays before it.
func (e *encoder) insert(at, n int) {
	e.b = slices.Grow(e.b, n)[:len(e.b)+n]
	copy(e.b[at+n:], e.b[at:])
	for i := len(e.ext) - 1; i >= 0 && e.ext[i].at > at; i-- {
		e.ext[i].at += n
	}
}

// truncate forgets everything after the mark (size of b, number of ext).
func (e *encoder) truncate(n, exts int) {
	for _, x := range e.ext[exts:] {
		e.extLen -= len(x.data)
	}
	clear(e.ext[exts:])
	e.ext = e.ext[:exts]
	e.b = e.b[:n]
}

func (e *encoder) tag(num, wt uint64) { e.b = appendVarint(e.b, num<<3|wt) }

// open starts a nested message and returns the mark to close it with. Its length is
// guessed to fit one byte: most do, and close moves those that do not.
func (e *encoder) open(num uint64) (at, ext int) {
	e.tag(num, wtBytes)
	e.b = append(e.b, 0)
	return len(e.b), e.extLen
}

func (e *encoder) close(at, ext int) {
	n := uint64(len(e.b) - at + e.extLen - ext)
	if n < 0x80 {
		e.b[at-1] = byte(n)
		return
	}
	e.insert(at, protowire.SizeVarint(n)-1)
	appendVarint(e.b[:at-1], n)
}

// The field writers leave out what has its zero value.

func (e *encoder) uint(num, v uint64) {
	if v != 0 {
		e.b = appendVarint(appendVarint(e.b, num<<3|wtVarint), v)
	}
}

func (e *encoder) sint(num uint64, v int64) { e.uint(num, protowire.EncodeZigZag(v)) }

func (e *encoder) bool(num uint64, v bool) {
	if v {
		e.b = append(appendVarint(e.b, num<<3|wtVarint), 1)
	}
}

func (e *encoder) fixed64(num, v uint64) {
	if v != 0 {
		e.b = protowire.AppendFixed64(appendVarint(e.b, num<<3|wtFixed64), v)
	}
}

func (e *encoder) bytes(num uint64, v []byte) {
	if len(v) == 0 {
		return
	}
	e.tag(num, wtBytes)
	e.b = appendVarint(e.b, uint64(len(v)))
	e.raw(v)
}

// raw writes bytes as they are.
func (e *encoder) raw(v []byte) {
	if e.alias > 0 && len(v) >= e.alias {
		e.ext = append(e.ext, external{len(e.b), v})
		e.extLen += len(v)
		return
	}
	e.b = append(e.b, v...)
}

func (e *encoder) string(num uint64, v string) {
	if v != "" {
		e.text(num, v)
	}
}

// text writes a string even if it is empty. What is not UTF-8 is made so: other
// languages' decoders refuse anything else.
func (e *encoder) text(num uint64, v string) {
	if !utf8.ValidString(v) {
		v = strings.ToValidUTF8(v, "\uFFFD")
	}
	e.tag(num, wtBytes)
	e.b = append(appendVarint(e.b, uint64(len(v))), v...)
}

func (e *encoder) task(num uint64, v ids.TaskID) {
	if v != (ids.TaskID{}) {
		e.taskID(num, &v)
	}
}

// taskID writes a task's id even if it is zero, as an element of a list must be.
func (e *encoder) taskID(num uint64, v *ids.TaskID) {
	e.b = append(append(appendVarint(e.b, num<<3|wtBytes), idSize), v[:]...)
}

func (e *encoder) object(num uint64, v ids.ObjectID) {
	if v != (ids.ObjectID{}) {
		e.id(num, &v)
	}
}

// id writes an object id even if it is zero, as an element of a list must be.
func (e *encoder) id(num uint64, v *ids.ObjectID) {
	e.b = append(append(appendVarint(e.b, num<<3|wtBytes), objectSize), v.Task[:]...)
	e.b = append(e.b, byte(v.Index>>24), byte(v.Index>>16), byte(v.Index>>8), byte(v.Index))
}

func (e *encoder) objects(num uint64, vs []ids.ObjectID) {
	if len(vs) > 8 {
		e.b = slices.Grow(e.b, len(vs)*(objectSize+2))
	}
	for i := range vs {
		e.id(num, &vs[i])
	}
}

const (
	idSize     = ids.TaskSize // of an actor id too
	objectSize = ids.ObjectSize

	shortIDSize     = idSize - 4 // in logs of releases before 0.5
	shortObjectSize = objectSize - 4
)

// appendVarint is protowire.AppendVarint with the one-byte case inlined.
func appendVarint(b []byte, v uint64) []byte {
	if v < 0x80 {
		return append(b, byte(v))
	}
	return protowire.AppendVarint(b, v)
}
