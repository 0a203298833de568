package wire

import (
	"encoding/binary"
	"unicode/utf8"
	"unsafe"

	"google.golang.org/protobuf/encoding/protowire"

	"mobula/internal/errs"
	"mobula/internal/ids"
)

// maxAmplification bounds what a message's lists may take in memory, as a multiple of
// its length (plus a small constant): a list of empty elements, two bytes each, is no
// way to make the receiver allocate. Honest messages stay below 30.
const (
	maxAmplification = 32
	freeAmplified    = 64 << 10
)

// A Decoder decodes messages of one connection: it keeps the tables that make equal
// options one pointer. The zero value is ready. One goroutine at a time.
type Decoder struct {
	table interned

	// Of the message being decoded.
	name  string
	msg   []byte // its whole body
	unit  []byte // the part of it that is copied, or aliased, as one
	tail  []byte // the copy of unit from tailAt on, made when first needed
	at    int    // offset in unit where tail starts
	alias bool   // byte strings may alias the body
	spare int    // bytes that lists may still allocate
	fail  error

	passing Done // scratch of report
	looks   bool // report is under way: no byte string is kept
}

// start makes b the message being decoded.
func (d *Decoder) start(name string, b []byte, alias bool) {
	d.name, d.msg, d.fail = name, b, nil
	d.spare = maxAmplification*len(b) + freeAmplified
	d.enter(b, alias)
}

// enter makes b, a part of the message, the unit whose byte strings live and die together.
func (d *Decoder) enter(b []byte, alias bool) {
	d.unit, d.tail, d.alias = b, nil, alias
}

// within is where b, a part of whole, starts in it: every slice here keeps the
// capacity of what it was cut from.
func within(whole, b []byte) int { return cap(whole) - cap(b) }

// malformed records the first thing wrong.
func (d *Decoder) malformed(b []byte, format string, args ...any) {
	if d.fail != nil {
		return
	}
	what := errs.New(errs.CodeProtocol, format, args...).Msg
	d.fail = errs.New(errs.CodeProtocol, "malformed %s at byte %d of %d: %s", d.name, within(d.msg, b), len(d.msg), what)
}

// keep returns raw as something that may outlive the frame: raw itself where the
// message may alias its buffer, else its place in a copy of the rest of the unit.
func (d *Decoder) keep(raw []byte) []byte {
	if len(raw) == 0 {
		return nil
	}
	if d.alias || d.looks {
		return raw[:len(raw):len(raw)]
	}
	off := within(d.unit, raw)
	if d.tail == nil {
		d.at = off
		d.tail = append([]byte(nil), d.unit[off:]...)
	}
	if off -= d.at; off < 0 { // fields out of their order: before what was copied
		return append([]byte(nil), raw...)
	}
	return d.tail[off : off+len(raw) : off+len(raw)]
}

// room tells whether n elements of size bytes each may be allocated.
func (d *Decoder) room(b []byte, n, size int) bool {
	if d.spare -= n * size; d.spare < 0 {
		d.malformed(b, "%d list elements in so few bytes", n)
		return false
	}
	return true
}

// A cursor walks the fields of one message. It is declared before the loop that uses it:
// a loop variable whose address is taken is copied at each turn. It counts and does not
// shorten b: a store of a pointer costs a write barrier while the collector runs.
type cursor struct {
	b   []byte
	i   int    // what is left starts here
	tag uint64 // of the field that next found: number and wire type
	d   *Decoder
}

// rest is what is left.
func (c *cursor) rest() []byte { return c.b[c.i:] }

// stop ends the walk after a fault.
func (c *cursor) stop(format string, args ...any) {
	c.d.malformed(c.rest(), format, args...)
	c.i = len(c.b)
}

// next moves to the next field; the caller then takes its value, or skips it.
func (c *cursor) next() bool {
	if c.i >= len(c.b) || c.d.fail != nil {
		return false
	}
	if c.tag = uint64(c.b[c.i]); c.tag < 0x80 {
		c.i++
	} else {
		c.tag = c.varint()
	}
	if n := c.tag >> 3; n == 0 || n > uint64(protowire.MaxValidNumber) {
		c.stop("field number %d", n)
	}
	return c.d.fail == nil
}

func (c *cursor) varint() uint64 {
	if c.i < len(c.b) && c.b[c.i] < 0x80 {
		c.i++
		return uint64(c.b[c.i-1])
	}
	v, n := protowire.ConsumeVarint(c.rest())
	if n < 0 {
		c.stop("field %d: bad or truncated number", c.tag>>3)
		return 0
	}
	c.i += n
	return v
}

func (c *cursor) uint32() uint32 { return uint32(c.varint()) }
func (c *cursor) bool() bool     { return c.varint() != 0 }
func (c *cursor) sint() int64    { return protowire.DecodeZigZag(c.varint()) }

// sint32 takes the low half, as every protobuf decoder does.
func (c *cursor) sint32() int32 { return int32(protowire.DecodeZigZag(c.varint() & 0xffffffff)) }

func (c *cursor) fixed64() uint64 {
	if left := len(c.b) - c.i; left < 8 {
		c.stop("field %d: %d bytes where 8 are needed", c.tag>>3, left)
		return 0
	}
	c.i += 8
	return binary.LittleEndian.Uint64(c.b[c.i-8:])
}

// bytes is a length-delimited value, still in the message's buffer.
func (c *cursor) bytes() []byte {
	n := c.varint()
	if n > uint64(len(c.b)-c.i) {
		c.stop("field %d announces %d bytes, %d are left", c.tag>>3, n, len(c.b)-c.i)
		return nil
	}
	at := c.i
	c.i += int(n)
	return c.b[at:c.i]
}

// kept is bytes for a field that outlives the frame.
func (c *cursor) kept() []byte { return c.d.keep(c.bytes()) }

func (c *cursor) string() string {
	raw := c.bytes()
	c.utf8(raw)
	return string(raw)
}

func (c *cursor) text() string {
	raw := c.bytes()
	c.utf8(raw)
	return c.d.table.text(raw)
}

func (c *cursor) utf8(raw []byte) {
	if !utf8.Valid(raw) {
		c.d.malformed(raw, "field %d is not UTF-8", c.tag>>3)
	}
}

// enum is a number of at most most.
func (c *cursor) enum(most uint8) uint8 {
	v := c.varint()
	if v > uint64(most) {
		c.stop("field %d has the unknown value %d", c.tag>>3, v)
		return 0
	}
	return uint8(v)
}

// task and object write where the id belongs: an array returned by value is copied
// through the stack, in pieces that stall on one another.
func (c *cursor) task(t *ids.TaskID) {
	switch raw := c.bytes(); len(raw) {
	case idSize:
		*t = ids.TaskID(raw)
	case shortIDSize:
		*t = ids.Widen([shortIDSize]byte(raw))
	default:
		c.badID(raw, idSize)
	}
}

func (c *cursor) object(o *ids.ObjectID) {
	switch raw := c.bytes(); len(raw) {
	case objectSize:
		o.Task = ids.TaskID(raw[:idSize])
		o.Index = binary.BigEndian.Uint32(raw[idSize:])
	case shortObjectSize:
		o.Task = ids.Widen([shortIDSize]byte(raw[:shortIDSize]))
		o.Index = binary.BigEndian.Uint32(raw[shortIDSize:])
	default:
		c.badID(raw, objectSize)
	}
}

// badID refuses an id of the wrong length; an empty one is the zero id.
func (c *cursor) badID(raw []byte, want int) {
	if len(raw) != 0 && c.d.fail == nil {
		c.d.malformed(raw, "field %d: an id of %d bytes, want %d", c.tag>>3, len(raw), want)
	}
}

// readEmpty reads a message that has no fields.
func readEmpty(d *Decoder, b []byte) {
	c := cursor{b: b, d: d}
	for c.next() {
		c.skip()
	}
}

func (c *cursor) skip() {
	n := protowire.ConsumeFieldValue(protowire.Number(c.tag>>3), protowire.Type(c.tag&7), c.rest())
	if n < 0 {
		c.stop("field %d: %v", c.tag>>3, protowire.ParseError(n))
		return
	}
	c.i += n
}

// more counts the fields with c's tag from the current one on, so that a list is
// allocated once. Called before the value of the first is taken.
func (c *cursor) more() int {
	b := c.rest()
	n := valueLen(b, c.tag)
	if n < 0 || n > len(b) {
		return 1
	}
	return 1 + countTag(b[n:], c.tag)
}

// countTag counts the fields of b with this tag; of a malformed b those before the fault.
func countTag(b []byte, tag uint64) int {
	n := 0
	for len(b) > 0 {
		v, used := uint64(b[0]), 1
		if v >= 0x80 {
			if v, used = protowire.ConsumeVarint(b); used < 0 {
				return n
			}
		}
		b = b[used:]
		if used = valueLen(b, v); used < 0 || used > len(b) {
			return n
		}
		b = b[used:]
		if v == tag {
			n++
		}
	}
	return n
}

// valueLen is the length of the value of a field with this tag at the start of b;
// negative, or more than b has, if it is malformed.
func valueLen(b []byte, tag uint64) int {
	switch {
	case len(b) == 0 || tag>>3 == 0 || tag>>3 > uint64(protowire.MaxValidNumber):
		return -1
	case b[0] < 0x80 && tag&7 == wtBytes:
		return 1 + int(b[0])
	case b[0] < 0x80 && tag&7 == wtVarint:
		return 1
	}
	return protowire.ConsumeFieldValue(protowire.Number(tag>>3), protowire.Type(tag&7), b)
}

// grow makes room in a list for all its elements when the first is met.
func grow[T any](c *cursor, s []T) []T {
	var zero T
	size := int(unsafe.Sizeof(zero))
	if s == nil {
		if n := c.more(); c.d.room(c.rest(), n, size) {
			return make([]T, 0, n)
		}
	} else if len(s) == cap(s) { // the message was sent in two halves
		c.d.room(c.rest(), 1, size)
	}
	return s
}

// elem appends a zero element and returns it.
func elem[T any](c *cursor, s *[]T) *T {
	var zero T
	*s = append(grow(c, *s), zero)
	return &(*s)[len(*s)-1]
}
