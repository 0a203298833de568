package wire

import (
	"mobula/internal/errs"
	"mobula/internal/ids"
)

// The messages by hand that are inside others: nestX writes an X as field num, with its length, where writeX of others writes the fields alone.

func nestValue(e *encoder, num uint64, v *Value) {
	if len(v.Meta)+len(v.Data)+len(v.Refs) == 0 {
		return
	}
	nestValueAlways(e, num, v)
}

func nestValueAlways(e *encoder, num uint64, v *Value) {
	if len(v.Meta) > MaxMeta {
		e.bad = errs.New(errs.CodeInvalid, "a value's Meta is %d bytes long, the limit is %d", len(v.Meta), MaxMeta)
	}
	at, ext := e.open(num)
	e.bytes(1, v.Meta)
	e.bytes(2, v.Data)
	e.objects(3, v.Refs)
	e.close(at, ext)
}

func nestExtent(e *encoder, num uint64, x *Extent) {
	if *x == (Extent{}) {
		return
	}
	at, ext := e.open(num)
	e.uint(1, uint64(x.File))
	e.uint(2, x.Off)
	e.uint(3, x.Size)
	e.close(at, ext)
}

func nestResult(e *encoder, num uint64, r *Result) {
	at, ext := e.open(num)
	e.uint(1, uint64(r.Kind))
	nestValue(e, 2, &r.Value)
	e.uint(3, r.Size)
	nestError(e, 4, r.Err)
	e.close(at, ext)
}

func nestTraceContext(e *encoder, num uint64, t *TraceContext) {
	if *t == (TraceContext{}) {
		return
	}
	at, ext := e.open(num)
	if t.TraceID != [16]byte{} {
		e.tag(1, wtBytes)
		e.b = append(append(e.b, 16), t.TraceID[:]...)
	}
	if t.SpanID != [8]byte{} {
		e.tag(2, wtBytes)
		e.b = append(append(e.b, 8), t.SpanID[:]...)
	}
	e.uint(3, uint64(t.Flags))
	e.close(at, ext)
}

func nestTaskSpec(e *encoder, num uint64, s *TaskSpec) {
	if s == nil {
		return
	}
	at, ext := e.open(num)
	e.task(1, s.ID)
	e.task(2, s.Parent)
	e.uint(3, uint64(s.Kind))
	e.options(4, s.Opts)
	for i := range s.Args {
		nestArg(e, 5, &s.Args[i])
	}
	e.task(6, ids.TaskID(s.Actor))
	writeSpecEnd(e, s)
	e.close(at, ext)
}

// writeSpecEnd writes the fields after the actor.
func writeSpecEnd(e *encoder, s *TaskSpec) {
	e.uint(7, s.Seq)
	e.fixed64(8, uint64(s.Deadline))
	nestTraceContext(e, 9, &s.Trace)
	e.string(10, s.Callsite)
	e.fixed64(11, uint64(s.Submitted))
	e.numbers(12, s.Promises)
}

// writeSpecAlone writes a spec without what its method says.
func writeSpecAlone(e *encoder, s *TaskSpec) {
	e.task(1, s.ID)
	e.task(2, s.Parent)
	for i := range s.Args {
		nestArg(e, 5, &s.Args[i])
	}
	writeSpecEnd(e, s)
}

// numbers writes a packed list.
func (e *encoder) numbers(num uint64, s []uint32) {
	if len(s) == 0 {
		return
	}
	at, ext := e.open(num)
	for _, n := range s {
		e.b = appendVarint(e.b, uint64(n))
	}
	e.close(at, ext)
}

func (e *encoder) counts(num uint64, s []uint64) {
	if len(s) == 0 {
		return
	}
	at, ext := e.open(num)
	for _, n := range s {
		e.b = appendVarint(e.b, n)
	}
	e.close(at, ext)
}

func nestArg(e *encoder, num uint64, a *Arg) {
	at, ext := e.open(num)
	if a.Ref.IsZero() {
		nestValueAlways(e, 2, &a.Value)
	} else {
		e.id(1, &a.Ref)
		nestValue(e, 2, &a.Value)
	}
	e.close(at, ext)
}

// options writes the encoding of o from the cache of the connection, if it has one.
func (e *encoder) options(num uint64, o *TaskOptions) {
	if o == nil {
		return
	}
	e.tag(num, wtBytes)
	if enc, ok := e.opts.get(o); ok {
		e.b = append(appendVarint(e.b, uint64(len(enc))), enc...)
		return
	}
	e.b = append(e.b, 0)
	at, ext := len(e.b), e.extLen
	writeTaskOptions(e, o)
	e.opts.put(o, e.b[at:])
	e.close(at, ext)
}

func nestExecTask(e *encoder, num uint64, t *ExecTask) {
	at, ext := e.open(num)
	nestTaskSpec(e, 1, t.Spec)
	e.uint(2, uint64(t.Attempt))
	for i := range t.Args {
		nestArgValue(e, 3, &t.Args[i])
	}
	e.close(at, ext)
}

func nestArgValue(e *encoder, num uint64, a *ArgValue) {
	at, ext := e.open(num)
	e.uint(1, uint64(uint32(a.Index)))
	nestResult(e, 2, &a.Result)
	nestExtent(e, 3, &a.Extent)
	e.close(at, ext)
}
