package wire

import (
	"unsafe"

	"mobula/internal/errs"
	"mobula/internal/ids"
)

func readValue(d *Decoder, b []byte, v *Value) {
	c := cursor{b: b, d: d}
	for c.next() {
		switch c.tag {
		case 1<<3 | wtBytes:
			if v.Meta = c.kept(); len(v.Meta) > MaxMeta {
				c.stop("a value's Meta of %d bytes, the limit is %d", len(v.Meta), MaxMeta)
			}
		case 2<<3 | wtBytes:
			v.Data = c.kept()
		case 3<<3 | wtBytes:
			v.Refs = c.objects(v.Refs)
		default:
			c.skip()
		}
	}
}

func (c *cursor) objects(s []ids.ObjectID) []ids.ObjectID {
	c.object(elem(c, &s))
	return s
}

func readExtent(d *Decoder, b []byte, x *Extent) {
	c := cursor{b: b, d: d}
	for c.next() {
		switch c.tag {
		case 1<<3 | wtVarint:
			x.File = c.uint32()
		case 2<<3 | wtVarint:
			x.Off = c.varint()
		case 3<<3 | wtVarint:
			x.Size = c.varint()
		default:
			c.skip()
		}
	}
}

func readResult(d *Decoder, b []byte, r *Result) {
	c := cursor{b: b, d: d}
	for c.next() {
		switch c.tag {
		case 1<<3 | wtVarint:
			r.Kind = ResultKind(c.enum(uint8(ResultError)))
		case 2<<3 | wtBytes:
			readValue(d, c.bytes(), &r.Value)
		case 3<<3 | wtVarint:
			r.Size = c.varint()
		case 4<<3 | wtBytes:
			r.Err = readError(d, c.bytes())
		default:
			c.skip()
		}
	}
	if r.Kind == ResultError && r.Err == nil { // what a reader would look at
		r.Err = &errs.Error{Code: errs.CodeUnknown, Msg: "an error without a description"}
	}
}

func readTraceContext(d *Decoder, b []byte, t *TraceContext) {
	c := cursor{b: b, d: d}
	for c.next() {
		switch c.tag {
		case 1<<3 | wtBytes:
			if raw := c.bytes(); len(raw) == len(t.TraceID) {
				t.TraceID = [16]byte(raw)
			} else {
				c.badID(raw, len(t.TraceID))
			}
		case 2<<3 | wtBytes:
			if raw := c.bytes(); len(raw) == len(t.SpanID) {
				t.SpanID = [8]byte(raw)
			} else {
				c.badID(raw, len(t.SpanID))
			}
		case 3<<3 | wtVarint:
			t.Flags = byte(c.varint())
		default:
			c.skip()
		}
	}
}

const argsTag = 5<<3 | wtBytes

// readTaskSpec reads into s; args is room for its arguments, if the caller has some.
func readTaskSpec(d *Decoder, b []byte, s *TaskSpec, args []Arg) {
	if len(b) == 0 {
		d.malformed(b, "an empty task spec")
	}
	s.Args = args
	readSpecFields(d, b, s)
	if s.Opts == nil {
		d.malformed(b[len(b):], "a task spec without options")
	}
}

func readSpecFields(d *Decoder, b []byte, s *TaskSpec) {
	c := cursor{b: b, d: d}
	for c.next() {
		switch c.tag {
		case 1<<3 | wtBytes:
			c.task(&s.ID)
		case 2<<3 | wtBytes:
			c.task(&s.Parent)
		case 3<<3 | wtVarint:
			s.Kind = TaskKind(c.enum(uint8(TaskActorCall)))
		case 4<<3 | wtBytes:
			s.Opts = d.options(c.bytes())
		case argsTag:
			a := elem(&c, &s.Args)
			readArg(d, c.bytes(), a)
		case 6<<3 | wtBytes:
			c.task((*ids.TaskID)(&s.Actor))
		case 7<<3 | wtVarint:
			s.Seq = c.varint()
		case 8<<3 | 1:
			s.Deadline = int64(c.fixed64())
		case 9<<3 | wtBytes:
			readTraceContext(d, c.bytes(), &s.Trace)
		case 10<<3 | wtBytes:
			s.Callsite = c.text()
		case 11<<3 | 1:
			s.Submitted = int64(c.fixed64())
		case 12<<3 | wtBytes:
			s.Promises = c.numbers(s.Promises)
		default:
			c.skip()
		}
	}
}

// numbers appends a packed list of uint32.
func (c *cursor) numbers(s []uint32) []uint32 {
	raw := c.bytes()
	in := cursor{b: raw, d: c.d}
	for in.i < len(in.b) && c.d.fail == nil {
		*elem(c, &s) = in.uint32()
	}
	return s
}

func (c *cursor) counts(s []uint64) []uint64 {
	raw := c.bytes()
	in := cursor{b: raw, d: c.d}
	for in.i < len(in.b) && c.d.fail == nil {
		*elem(c, &s) = in.varint()
	}
	return s
}

func readArg(d *Decoder, b []byte, a *Arg) {
	c := cursor{b: b, d: d}
	for c.next() {
		switch c.tag {
		case 1<<3 | wtBytes:
			c.object(&a.Ref)
		case 2<<3 | wtBytes:
			readValue(d, c.bytes(), &a.Value)
		default:
			c.skip()
		}
	}
}

// options returns the one pointer for these bytes.
func (d *Decoder) options(b []byte) *TaskOptions {
	if o := d.table.get(b); o != nil {
		return o
	}
	o := new(TaskOptions)
	d.room(b, 1, int(unsafe.Sizeof(*o)))
	readTaskOptions(d, b, o)
	if d.fail == nil {
		d.table.put(b, o)
	}
	return o
}

// specArgs is a spec with room for the few arguments that most have: one allocation.
type specArgs struct {
	spec TaskSpec
	args [2]Arg
}

// newTaskSpec reads a spec into an allocation of its own.
func newTaskSpec(d *Decoder, b []byte) *TaskSpec {
	d.room(b, 1, int(unsafe.Sizeof(specArgs{})))
	switch n := countTag(b, argsTag); {
	case n == 0 || n > len(specArgs{}.args):
		s := new(TaskSpec)
		readTaskSpec(d, b, s, nil)
		return s
	default:
		s := new(specArgs)
		readTaskSpec(d, b, &s.spec, s.args[:0])
		return &s.spec
	}
}

// readExecTask reads one task as a unit of its own: a long task must not keep the
// buffers of those that came with it.
func readExecTask(d *Decoder, b []byte, t *ExecTask, alias bool) {
	d.enter(b, alias && 2*len(b) >= len(d.msg))
	c := cursor{b: b, d: d}
	for c.next() {
		switch c.tag {
		case 1<<3 | wtBytes:
			t.Spec = newTaskSpec(d, c.bytes())
		case 2<<3 | wtVarint:
			t.Attempt = c.uint32()
		case 3<<3 | wtBytes:
			a := elem(&c, &t.Args)
			readArgValue(d, c.bytes(), a)
		default:
			c.skip()
		}
	}
	if t.Spec == nil {
		d.malformed(b[len(b):], "a task without a spec")
		return
	}
	d.argsFit(b, t.Spec, t.Args)
}

// argsFit refuses values of arguments that a spec does not have.
func (d *Decoder) argsFit(b []byte, s *TaskSpec, args []ArgValue) {
	for i := range args {
		if x := args[i].Index; x < 0 || int(x) >= len(s.Args) {
			d.malformed(b[len(b):], "a value for argument %d of %d", x, len(s.Args))
		}
	}
}

func readArgValue(d *Decoder, b []byte, a *ArgValue) {
	c := cursor{b: b, d: d}
	for c.next() {
		switch c.tag {
		case 1<<3 | wtVarint:
			a.Index = int32(c.varint())
		case 2<<3 | wtBytes:
			readResult(d, c.bytes(), &a.Result)
		case 3<<3 | wtBytes:
			readExtent(d, c.bytes(), &a.Extent)
		default:
			c.skip()
		}
	}
}
