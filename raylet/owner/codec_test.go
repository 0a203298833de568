package owner

import (
	"errors"
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/raylet/owner/actor"
	"mobula/raylet/owner/task"
	"mobula/wire"
)

// draws makes records with every field filled at random.
type draws struct{ *rapid.T }

func (d draws) task() ids.TaskID {
	return ids.TaskID(rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(d.T, "task"))
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

func (d draws) options() *wire.TaskOptions {
	o := &wire.TaskOptions{
		Func: d.text(), NumReturns: d.i32(), MaxRetries: d.i32(), RetryExceptions: d.flag(), Isolate: d.flag(), Backpressure: d.i32(),
		Spread: d.flag(), Label: d.text(), MaxRestarts: d.i32(), MaxTaskRetries: d.i32(), MaxConcurrency: d.i32(), MaxPendingCalls: d.i32(),
		Namespace: d.text(), ActorName: d.text(), Detached: d.flag(), GetIfExists: d.flag(), Group: d.text(),
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
	rapid.Check(t, func(rt *rapid.T) {
		d := draws{rt}
		seq := rapid.Uint64().Draw(rt, "number")
		var b []byte
		var want Record
		switch rapid.IntRange(0, 8).Draw(rt, "record") {
		case 0:
			r := &OptionsRecord{No: 1 + rapid.Uint32Max(1<<30).Draw(rt, "no"), Opts: d.options()}
			b, want = appendOptionsRecord(nil, seq, r.No, appendOptions(nil, r.Opts)), r
			if len(appendOptions(nil, r.Opts)) == 0 {
				return // options that say nothing are no record
			}
		case 1:
			r := &SubmitRecord{OptsNo: rapid.Uint32().Draw(rt, "no"), Spec: d.spec()}
			if r.OptsNo == 0 {
				r.Spec.Opts = d.options()
			}
			b, want = appendSubmit(nil, seq, r.Spec, r.OptsNo), r
		case 2:
			r := &DoneRecord{State: task.Finished, Done: wire.Done{Task: d.task(), Attempt: rapid.Uint32().Draw(rt, "attempt"), Items: rapid.Uint32().Draw(rt, "items")}}
			if d.flag() {
				r.State, r.Done.Err = task.Failed, d.err(0)
			}
			for range rapid.IntRange(0, 3).Draw(rt, "results") {
				r.Done.Results = append(r.Done.Results, d.result())
			}
			b, want = appendDone(nil, seq, &r.Done, r.State), r
		case 3:
			r := &ObjectRecord{ID: d.object(), Attempt: rapid.Uint32().Draw(rt, "attempt"), Result: d.result()}
			b, want = appendObject(nil, seq, r.ID, r.Attempt, &r.Result), r
		case 4:
			r := &RetryRecord{Task: d.task(), Attempt: rapid.Uint32().Draw(rt, "attempt"), Tries: rapid.Uint32().Draw(rt, "tries"), Cancelled: d.flag()}
			b, want = appendRetry(nil, seq, r.Task, r.Attempt, r.Tries, r.Cancelled), r
		case 5:
			r := &ForgetRecord{}
			for range rapid.IntRange(0, 4).Draw(rt, "ids") {
				r.IDs = append(r.IDs, d.object())
			}
			b, want = appendForget(nil, seq, r.IDs), r
		case 6:
			r := &ActorRecord{
				Actor: ids.ActorID(d.task()), State: actor.State(rapid.IntRange(0, int(actor.Locating)).Draw(rt, "state")), Restarts: d.i32(),
				Lease: ids.LeaseID(rapid.Uint64().Draw(rt, "lease")), Worker: ids.ClientID(rapid.Uint64().Draw(rt, "worker")), Named: d.flag(), Alias: ids.ActorID(d.task()),
			}
			if d.flag() {
				r.Err = d.err(0)
			}
			b, want = appendActor(nil, seq, r), r
		case 7:
			r := &PackedRecord{ID: d.object(), Size: rapid.Uint64().Draw(rt, "size")}
			b, want = appendPacked(nil, seq, r.ID, r.Size), r
		case 8:
			r := &ClosedRecord{Task: d.task()}
			b, want = appendClosed(nil, seq, r.Task), r
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
	f.Add(appendSubmit(nil, 7, s, 0))
	f.Add(appendOptionsRecord(nil, 1, 2, appendOptions(nil, s.Opts)))
	f.Add(appendDone(nil, 9, &wire.Done{Task: s.ID, Attempt: 2, Results: []wire.Result{inline("v")}}, task.Finished))
	f.Add(appendDone(nil, 9, &wire.Done{Task: s.ID, Err: &errs.Error{Code: 1, Cause: []*errs.Error{{Msg: "deep"}}}}, task.Failed))
	f.Add(appendObject(nil, 1, s.ID.Put(1), 1, &wire.Result{Kind: wire.ResultStored, Size: 9}))
	f.Add(appendRetry(nil, 1, s.ID, 2, 3, true))
	f.Add(appendForget(nil, 1, []ids.ObjectID{s.ID.Return(0)}))
	f.Add(appendActor(nil, 1, &ActorRecord{Actor: ids.ActorID(s.ID), State: actor.Alive, Lease: 5}))
	f.Add(appendPacked(nil, 1, s.ID.Return(0), 77))
	f.Add(appendClosed(nil, 1, s.ID))
	f.Fuzz(func(t *testing.T, b []byte) {
		r, seq, err := Parse(b)
		if err != nil {
			if !errors.Is(err, ErrBadRecord) || r != nil {
				t.Fatalf("%v, %v", r, err)
			}
			return
		}
		var again []byte
		switch r := r.(type) {
		case *OptionsRecord:
			again = appendOptionsRecord(nil, seq, r.No, appendOptions(nil, r.Opts))
			if len(appendOptions(nil, r.Opts)) == 0 {
				return
			}
		case *SubmitRecord:
			if r.OptsNo != 0 {
				r.Spec.Opts = nil // named by number: what stands beside it is not written
			}
			again = appendSubmit(nil, seq, r.Spec, r.OptsNo)
		case *DoneRecord:
			again = appendDone(nil, seq, &r.Done, r.State)
		case *ObjectRecord:
			again = appendObject(nil, seq, r.ID, r.Attempt, &r.Result)
		case *RetryRecord:
			again = appendRetry(nil, seq, r.Task, r.Attempt, r.Tries, r.Cancelled)
		case *ForgetRecord:
			again = appendForget(nil, seq, r.IDs)
		case *ActorRecord:
			again = appendActor(nil, seq, r)
		case *PackedRecord:
			again = appendPacked(nil, seq, r.ID, r.Size)
		case *ClosedRecord:
			again = appendClosed(nil, seq, r.Task)
		}
		r2, seq2, err := Parse(again)
		if err != nil || seq2 != seq || !reflect.DeepEqual(r2, r) {
			t.Fatalf("%+v is read again as %+v (%v)", r, r2, err)
		}
	})
}

// A damaged record names its place.
func TestRebuildNamesTheRecordItCannotRead(t *testing.T) {
	_, err := Rebuild(Config{Job: 4}, func(yield func(uint64, []byte) bool) { yield(77, []byte{200, 1}) })
	if !errors.Is(err, ErrBadRecord) || err.Error() != "record at 77 of job 4: malformed record of the owner's log: kind 200: it is unknown" {
		t.Errorf("%v", err)
	}
}
