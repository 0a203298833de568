package wire

import (
	"fmt"
	"unicode/utf8"
	"unsafe"

	"mobula/internal/errs"
)

// Bounds of an error on the wire. A longer text is cut, a deeper or further cause
// left out, by the sender; a receiver leaves out causes beyond them too.
const (
	maxErrDepth  = 16
	maxErrCauses = 64        // in the whole tree, the root included
	maxErrLine   = 16 << 10  // bytes of a Msg
	maxErrStack  = 64 << 10  // bytes of a Stack
	maxErrName   = 1 << 10   // bytes of a Name or Task
	maxErrTexts  = 256 << 10 // bytes of all texts of the tree
	maxErrRefs   = 16 << 10  // in the whole tree; what has its texts has no more

	errSize = int(unsafe.Sizeof(errs.Error{}))
)

// AppendError appends the encoding of x (message Error of mobula.proto), bounded in
// depth and size. A nil x appends nothing.
func AppendError(dst []byte, x *errs.Error) []byte {
	if x == nil {
		return dst
	}
	e := encoder{b: dst}
	w := newErrWriter()
	w.fields(&e, x, 0)
	return e.b
}

// ParseError reads what AppendError wrote. The result shares nothing with data.
func ParseError(data []byte) (*errs.Error, error) {
	d := new(Decoder)
	d.start("Error", data, false)
	x, left := new(errs.Error), errLeft{maxErrCauses, maxErrRefs}
	readErrorFields(d, data, x, 0, &left)
	if d.fail != nil {
		return nil, d.fail
	}
	return x, nil
}

func nestError(e *encoder, num uint64, x *errs.Error) {
	if x == nil {
		return
	}
	w := newErrWriter()
	at, ext := e.open(num)
	w.fields(e, x, 0)
	e.close(at, ext)
}

// errWriter holds what is left of the bounds while one error is written.
type errWriter struct{ causes, texts, refs int }

func newErrWriter() errWriter {
	return errWriter{causes: maxErrCauses, texts: maxErrTexts, refs: maxErrRefs}
}

func (w *errWriter) fields(e *encoder, x *errs.Error, depth int) {
	w.causes--
	e.uint(1, uint64(x.Code))
	e.string(2, w.cut(x.Msg, maxErrLine))
	e.string(3, w.cut(x.Name, maxErrName))
	e.string(4, w.cut(x.Task, maxErrName))
	e.string(5, w.cut(x.Stack, maxErrStack))
	data := x.Data
	if len(data) > min(errs.MaxData, w.texts) {
		data = nil // the text stays
	}
	w.texts -= len(data)
	for _, c := range x.Cause {
		if c == nil || w.causes == 0 || depth == maxErrDepth {
			continue
		}
		at, ext := e.open(6)
		w.fields(e, c, depth+1)
		e.close(at, ext)
	}
	e.bytes(7, data)
	if len(data) == len(x.Data) { // else nothing is left that names them
		refs := x.Refs[:min(len(x.Refs), w.refs)]
		w.refs -= len(refs)
		e.objects(8, refs)
	}
}

func (w *errWriter) cut(s string, most int) string {
	if most = min(most, w.texts); len(s) > most {
		s = cutText(s, most)
	}
	w.texts -= min(len(s), w.texts)
	return s
}

// cutText shortens s to most bytes between two characters and says how much went.
func cutText(s string, most int) string {
	note := fmt.Sprintf(" ... (%d bytes in all)", len(s))
	if most <= len(note) {
		return ""
	}
	n := most - len(note)
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + note
}

// errLeft is what is left of the bounds while an error is read.
type errLeft struct{ causes, refs int }

// readErrorFields reads the fields of one error. What is beyond the bounds is skipped.
func readErrorFields(d *Decoder, b []byte, x *errs.Error, depth int, left *errLeft) {
	left.causes--
	c := cursor{b: b, d: d}
	for c.next() {
		switch c.tag {
		case 1<<3 | wtVarint:
			if v := c.varint(); v <= uint64(^errs.Code(0)) {
				x.Code = errs.Code(v)
			} else {
				x.Code = errs.CodeUnknown // of a later version
			}
		case 2<<3 | wtBytes:
			x.Msg = c.string()
		case 3<<3 | wtBytes:
			x.Name = c.string()
		case 4<<3 | wtBytes:
			x.Task = c.string()
		case 5<<3 | wtBytes:
			x.Stack = c.string()
		case 7<<3 | wtBytes:
			x.Data = append([]byte(nil), c.bytes()...) // nil where it is empty, as the sender leaves it out
		case 6<<3 | wtBytes:
			sub := c.bytes()
			if depth == maxErrDepth || left.causes == 0 {
				continue
			}
			cause := new(errs.Error)
			x.Cause = append(x.Cause, cause)
			d.room(sub, 1, errSize)
			readErrorFields(d, sub, cause, depth+1, left)
		case 8<<3 | wtBytes:
			if left.refs == 0 {
				c.skip()
				continue
			}
			left.refs--
			x.Refs = c.objects(x.Refs)
		default:
			c.skip()
		}
	}
}

func readError(d *Decoder, b []byte) *errs.Error {
	x, left := new(errs.Error), errLeft{maxErrCauses, maxErrRefs}
	d.room(b, 1, errSize)
	readErrorFields(d, b, x, 0, &left)
	return x
}
