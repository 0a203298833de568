package record

import (
	"errors"
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/internal/testkit"
	"mobula/raylet/owner/actor"
	"mobula/raylet/owner/task"
	"mobula/wire"
)

// draws makes records with every field filled at random.
type draws struct{ *rapid.T }

func (d draws) task() ids.TaskID {
	return ids.TaskID(rapid.SliceOfN(rapid.Byte(), ids.TaskSize, ids.TaskSize).Draw(d.T, "task"))
}

func (d draws) object() ids.ObjectID {
	return ids.ObjectID{Task: d.task(), Index: rapid.Uint32().Draw(d.T, "index")}
}

func (d draws) text() string { return rapid.StringN(0, 8, 20).Draw(d.T, "text") }
func (d draws) flag() bool   { return rapid.Bool().Draw(d.T, "flag") }
func (d draws) i32() int32   { return rapid.Int32().Draw(d.T, "number") }

func (d draws) bytes() []byte {
	if b := rapid.SliceOfN(rapid.Byte(), 0, 20).Draw(d.T, "bytes"); len(b) > 0 {
		return b
	}
	return nil
}

func (d draws) value() wire.Value {
	v := wire.Value{Meta: d.bytes(), Data: d.bytes()}
	for range rapid.IntRange(0, 2).Draw(d.T, "refs") {
		v.Refs = append(v.Refs, d.object())
	}
	return v
}

func (d draws) err(depth int) *errs.Error {
	e := &errs.Error{Code: errs.Code(rapid.Uint16().Draw(d.T, "code")), Msg: d.text(), Name: d.text(), Task: d.text(), Stack: d.text()}
	for range rapid.IntRange(0, 2).Draw(d.T, "references") {
		e.Refs = append(e.Refs, d.object())
	}
	for range rapid.IntRange(0, max(0, 2-depth)).Draw(d.T, "causes") {
		e.Cause = append(e.Cause, d.err(depth+1))
	}
	return e
}

func (d draws) result() wire.Result {
	r := wire.Result{Kind: wire.ResultKind(rapid.IntRange(1, 3).Draw(d.T, "result")), Value: d.value(), Size: rapid.Uint64().Draw(d.T, "size")}
	if r.Kind == wire.ResultError {
		r.Err = d.err(0)
	}
	return r
}

func (d draws) selector() (s []wire.LabelMatch) {
	for range rapid.IntRange(0, 2).Draw(d.T, "conditions") {
		m := wire.LabelMatch{Key: d.text(), Op: wire.LabelOp(rapid.IntRange(0, int(wire.LabelAbsent)).Draw(d.T, "op"))}
		for range rapid.IntRange(0, 2).Draw(d.T, "values") {
			m.Values = append(m.Values, d.text())
		}
		s = append(s, m)
	}
	return s
}

func (d draws) options() *wire.TaskOptions {
	o := &wire.TaskOptions{
		Func: d.text(), NumReturns: d.i32(), MaxRetries: d.i32(), RetryExceptions: d.flag(), Isolate: d.flag(), Backpressure: d.i32(),
		Spread: d.flag(), Label: d.text(), Process: d.text(), MaxRestarts: d.i32(), MaxTaskRetries: d.i32(), MaxConcurrency: d.i32(), MaxPendingCalls: d.i32(),
		Namespace: d.text(), ActorName: d.text(), Detached: d.flag(), GetIfExists: d.flag(), Group: d.text(), ExceptionRetries: d.i32(),
		RetryOnly: d.text(), Escalate: d.flag(), Labels: d.selector(), PreferLabels: d.selector(),
		Affinity: wire.Affinity(rapid.IntRange(0, int(wire.AffinitySoft)).Draw(d.T, "affinity")), Node: ids.Home(rapid.Uint32().Draw(d.T, "node")),
		OnPanic: wire.OnPanic(rapid.IntRange(0, int(wire.PanicEscalates)).Draw(d.T, "on panic")),
	}
	if d.flag() {
		o.Resources = []wire.Resource{} // asks for nothing: not the same as not asking
		for range rapid.IntRange(0, 2).Draw(d.T, "resources") {
			o.Resources = append(o.Resources, wire.Resource{Name: d.text(), Amount: rapid.Int64().Draw(d.T, "amount")})
		}
	}
	for range rapid.IntRange(0, 2).Draw(d.T, "groups") {
		o.Groups = append(o.Groups, wire.ConcurrencyGroup{Name: d.text(), Max: d.i32()})
	}
	return o
}

func (d draws) spec() *wire.TaskSpec {
	s := &wire.TaskSpec{
		ID: d.task(), Parent: d.task(), Kind: wire.TaskKind(rapid.IntRange(0, 2).Draw(d.T, "kind")), Actor: ids.ActorID(d.task()),
		Seq: rapid.Uint64().Draw(d.T, "seq"), Deadline: rapid.Int64().Draw(d.T, "deadline"), Callsite: d.text(),
	}
	s.ID[15] |= 1
	if d.flag() {
		s.Trace = wire.TraceContext{TraceID: [16]byte{1, 2}, SpanID: [8]byte{3}, Flags: 1}
	}
	for range rapid.IntRange(0, 2).Draw(d.T, "promises") {
		s.Promises = append(s.Promises, rapid.Uint32().Draw(d.T, "promise"))
	}
	for range rapid.IntRange(0, 3).Draw(d.T, "args") {
		if a := (wire.Arg{Value: d.value()}); d.flag() {
			a.Ref = d.object()
			a.Ref.Task[0] |= 1
			s.Args = append(s.Args, a)
		} else {
			s.Args = append(s.Args, a)
		}
	}
	return s
}

func TestRecordsAreReadAsTheyWereWritten(t *testing.T) {
	testkit.Check(t, func(rt *rapid.T) {
		d := draws{rt}
		seq := rapid.Uint64().Draw(rt, "number")
		var b []byte
		var want Record
		switch rapid.IntRange(0, 9).Draw(rt, "record") {
		case 0:
			r := &Options{No: 1 + rapid.Uint32Max(1<<30).Draw(rt, "no"), Opts: d.options()}
			b, want = AppendOptions(nil, seq, r.No, EncodeOptions(nil, r.Opts)), r
			if len(EncodeOptions(nil, r.Opts)) == 0 {
				return // options that say nothing are no record
			}
		case 1:
			r := &Submit{Spec: d.spec()}
			r.OptsNo, r.Born = rapid.Uint32().Draw(rt, "no"), rapid.Int64().Draw(rt, "born")
			if r.OptsNo == 0 {
				r.Spec.Opts = d.options()
			}
			if d.flag() {
				r.Parent = ids.ActorID(d.task())
			}
			b, want = AppendSubmit(nil, seq, r.Spec, r.Submission), r
		case 2:
			r := &Done{State: task.Finished, Done: wire.Done{Task: d.task(), Attempt: rapid.Uint32().Draw(rt, "attempt"), Items: rapid.Uint32().Draw(rt, "items")}}
			if d.flag() {
				r.State, r.Done.Err = task.Failed, d.err(0)
			}
			for range rapid.IntRange(0, 3).Draw(rt, "results") {
				r.Done.Results = append(r.Done.Results, d.result())
			}
			b, want = AppendDone(nil, seq, &r.Done, r.State), r
		case 3:
			r := &Object{ID: d.object(), Attempt: rapid.Uint32().Draw(rt, "attempt"), Result: d.result(), Elsewhere: rapid.Uint64().Draw(rt, "elsewhere")}
			b, want = AppendObject(nil, seq, r.ID, r.Attempt, &r.Result, r.Elsewhere), r
		case 4:
			r := &Retry{Task: d.task(), Attempt: rapid.Uint32().Draw(rt, "attempt"), Tries: rapid.Uint32().Draw(rt, "tries"), Errors: rapid.Uint32().Draw(rt, "errors"), Cancelled: d.flag(), Insist: d.flag()}
			b, want = AppendRetry(nil, seq, r), r
		case 5:
			r := &Forget{}
			for range rapid.IntRange(0, 4).Draw(rt, "ids") {
				r.IDs = append(r.IDs, d.object())
			}
			b, want = AppendForget(nil, seq, r.IDs), r
		case 6:
			r := &Actor{
				Actor: ids.ActorID(d.task()), State: actor.State(rapid.IntRange(0, int(actor.Locating)).Draw(rt, "state")), Restarts: d.i32(), Resets: d.i32(),
				Lease: ids.LeaseID(rapid.Uint64().Draw(rt, "lease")), Worker: ids.ClientID(rapid.Uint64().Draw(rt, "worker")), Named: d.flag(), Alias: ids.ActorID(d.task()),
			}
			if d.flag() {
				r.Err = d.err(0)
			}
			if d.flag() {
				r.Hurt = d.err(0)
			}
			b, want = AppendActor(nil, seq, r), r
		case 7:
			r := &Packed{ID: d.object(), Size: rapid.Uint64().Draw(rt, "size")}
			b, want = AppendPacked(nil, seq, r.ID, r.Size), r
		case 8:
			r := &Closed{Task: d.task()}
			b, want = AppendClosed(nil, seq, r.Task), r
		case 9:
			r := &Borrower{Job: ids.JobID(1 + rapid.Uint64Max(1<<62).Draw(rt, "job"))}
			b, want = AppendBorrower(nil, seq, r.Job), r
		}
		got, n, err := Parse(b)
		if err != nil || n != seq || !reflect.DeepEqual(got, want) {
			rt.Fatalf("read %+v as number %d (%v), wrote %+v as %d", got, n, err, want, seq)
		}
	})
}

// Whatever the bytes, Parse gives a record or ErrBadRecord, and what it gave is written and
// read again as the same.
func FuzzParse(f *testing.F) {
	s := &wire.TaskSpec{ID: ids.RootTask(1, 1), Opts: &wire.TaskOptions{Func: "f", Resources: []wire.Resource{{Name: "CPU", Amount: 500}}},
		Args: []wire.Arg{{Ref: ids.RootTask(1, 2).Return(3)}, {Value: wire.Value{Meta: []byte{1}, Data: []byte("data")}}}}
	f.Add(AppendSubmit(nil, 7, s, Submission{DetachedDescendant: true}))
	f.Add(AppendOptions(nil, 1, 2, EncodeOptions(nil, s.Opts)))
	f.Add(AppendDone(nil, 9, &wire.Done{Task: s.ID, Attempt: 2, Results: []wire.Result{inline("v")}}, task.Finished))
	f.Add(AppendDone(nil, 9, &wire.Done{Task: s.ID, Err: &errs.Error{Code: 1, Cause: []*errs.Error{{Msg: "deep", Refs: []ids.ObjectID{s.ID.Put(1)}}}}}, task.Failed))
	f.Add(AppendObject(nil, 1, s.ID.Put(1), 1, &wire.Result{Kind: wire.ResultStored, Size: 9}, 4))
	f.Add(AppendRetry(nil, 1, &Retry{Task: s.ID, Attempt: 2, Tries: 3, Errors: 4, Cancelled: true, Insist: true}))
	f.Add(AppendForget(nil, 1, []ids.ObjectID{s.ID.Return(0)}))
	f.Add(AppendActor(nil, 1, &Actor{Actor: ids.ActorID(s.ID), State: actor.Alive, Lease: 5}))
	f.Add(AppendPacked(nil, 1, s.ID.Return(0), 77))
	f.Add(AppendClosed(nil, 1, s.ID))
	f.Add(AppendBorrower(nil, 1, 7))
	f.Fuzz(func(t *testing.T, b []byte) {
		r, seq, err := Parse(b)
		if err != nil {
			if !errors.Is(err, ErrBadRecord) || r != nil {
				t.Fatalf("%v, %v", r, err)
			}
			return
		}
		switch r := r.(type) {
		case *Options:
			if len(EncodeOptions(nil, r.Opts)) == 0 {
				return
			}
		case *Submit:
			if r.OptsNo != 0 {
				r.Spec.Opts = nil // named by number: what stands beside it is not written
			}
		}
		again := written(r, seq)
		r2, seq2, err := Parse(again)
		if err != nil || seq2 != seq || !reflect.DeepEqual(r2, r) {
			t.Fatalf("%+v is read again as %+v (%v)", r, r2, err)
		}
	})
}

func inline(b string) wire.Result {
	return wire.Result{Kind: wire.ResultInline, Value: wire.Value{Data: []byte(b)}, Size: uint64(len(b))}
}
