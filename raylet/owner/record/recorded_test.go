package record

import (
	"encoding/hex"
	"flag"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/raylet/owner/actor"
	"mobula/raylet/owner/task"
	"mobula/wire"
)

var update = flag.Bool("update", false, "record what this build writes in testdata")

// recorded holds one record a line, its name before it, as the build wrote it that added it. A log must be read, and
// be written the same, for ever: a line is added and never changed (go test ./raylet/owner/record -run Recorded -update).
const recorded = "testdata/records.txt"

// samples are records with everything in them, and with as little as may be.
func samples() map[string][]byte {
	id := ids.Derive(ids.RootTask(7, 1), 5)
	obj := id.Return(2)
	failure := &errs.Error{Code: errs.CodeTaskFailed, Msg: "it failed", Name: "f", Task: "t", Stack: "a\nb", Data: []byte{1, 2},
		Refs: []ids.ObjectID{obj, id.Put(3)}, Cause: []*errs.Error{{Code: errs.CodePanic, Msg: "deep"}, {}}}
	value := wire.Value{Meta: []byte("m"), Data: []byte("data"), Refs: []ids.ObjectID{obj}}
	opts := &wire.TaskOptions{
		Func: "pkg/f", NumReturns: wire.Streaming, Resources: []wire.Resource{{Name: "CPU", Amount: 1500}, {Name: "memory", Amount: 1 << 40}},
		MaxRetries: -1, RetryExceptions: true, Isolate: true, Backpressure: 9, Spread: true, Label: "shown", ExceptionRetries: 4,
		RetryOnly: "0f", MaxRestarts: 3, MaxTaskRetries: -1, MaxConcurrency: 8, Groups: []wire.ConcurrencyGroup{{Name: "io", Max: 2}, {}},
		MaxPendingCalls: 100, Namespace: "ns", ActorName: "a", Detached: true, GetIfExists: true, Process: "p", Escalate: true, Group: "io",
	}
	spec := &wire.TaskSpec{
		ID: id, Parent: ids.RootTask(7, 1), Opts: opts, Args: []wire.Arg{{Ref: obj}, {Value: value}, {}, {Ref: obj, Value: wire.Value{Meta: []byte("x")}}},
		Actor: ids.ActorID(id), Seq: 12, Deadline: 1e18, Trace: wire.TraceContext{TraceID: [16]byte{15: 1}, SpanID: [8]byte{7: 2}, Flags: 1},
		Kind: wire.TaskActorCall, Callsite: "main.go:7", Submitted: 5, Promises: []uint32{1, 300, wire.EndOfCall},
	}
	halfTraced := *spec
	halfTraced.Trace.SpanID = [8]byte{}
	halfTraced.Trace.Flags = 0
	results := []wire.Result{
		{Kind: wire.ResultInline, Value: value, Size: 4}, {Kind: wire.ResultStored, Size: 1 << 33}, {Kind: wire.ResultError, Err: failure},
	}
	placed := &wire.TaskOptions{Func: "f", Labels: []wire.LabelMatch{{Key: "zone", Values: []string{"a", "", "b"}}, {Key: "ssd", Op: wire.LabelAbsent}},
		PreferLabels: []wire.LabelMatch{{Key: "rack", Op: wire.LabelNotIn, Values: []string{"3"}}, {}}, Affinity: wire.AffinitySoft, Node: ids.MaxHome}
	breaking := &wire.TaskOptions{Func: "f", OnPanic: wire.PanicStops}
	return map[string][]byte{
		"options, on panic":  AppendOptions(nil, 3, 302, EncodeOptions(nil, breaking)),
		"options, placed":    AppendOptions(nil, 2, 301, EncodeOptions(nil, placed)),
		"options":            AppendOptions(nil, 1, 300, EncodeOptions(nil, opts)),
		"options, none":      AppendOptions(nil, 1<<40, 1, EncodeOptions(nil, &wire.TaskOptions{Resources: []wire.Resource{}})),
		"submit":             AppendSubmit(nil, 77, spec, Submission{Born: 1e18, Parent: ids.ActorID(id), DetachedDescendant: true}),
		"submit by number":   AppendSubmit(nil, 78, spec, Submission{OptsNo: 300}),
		"submit elsewhere":   AppendSubmit(nil, 80, spec, Submission{OptsNo: 300, Elsewhere: true}),
		"submit half traced": AppendSubmit(nil, 79, &halfTraced, Submission{OptsNo: 1}),
		"submit, least":      AppendSubmit(nil, 0, &wire.TaskSpec{ID: id, Opts: &wire.TaskOptions{}}, Submission{}),
		"done":               AppendDone(nil, 5, &wire.Done{Task: id, Attempt: 2, Lease: 9, Results: results, Items: 3, Times: wire.Times{Received: 1}}, task.Finished),
		"done, failed":       AppendDone(nil, 6, &wire.Done{Task: id, Err: failure, Final: true}, task.Failed),
		"object":             AppendObject(nil, 7, id.Put(1), 3, &results[0], 0),
		"object, failed":     AppendObject(nil, 8, id.Put(1), 0, &results[2], 0),
		"object, freed":      AppendObject(nil, 8, id.Put(1), 3, &wire.Result{}, 0),
		"retry":              AppendRetry(nil, 9, &Retry{Task: id, Attempt: 1, Tries: 2, Errors: 3, Cancelled: true, Insist: true}),
		"retry elsewhere":    AppendRetry(nil, 9, &Retry{Task: id, Tries: 1, Elsewhere: true}),
		"retry, least":       AppendRetry(nil, 9, &Retry{Task: id}),
		"forget":             AppendForget(nil, 10, []ids.ObjectID{obj, {Task: id, Index: WholeTask}}),
		"actor": AppendActor(nil, 11, &Actor{Actor: ids.ActorID(id), State: actor.Stopping, Restarts: 2, Resets: -1, Lease: 5, Worker: 6, Named: true,
			Alias: ids.ActorID(ids.RootTask(8, 1)), Err: failure, Stop: true, Hurt: failure}),
		"actor, least": AppendActor(nil, 12, &Actor{Actor: ids.ActorID(id)}),
		"packed":       AppendPacked(nil, 13, obj, 1<<20),
		"closed":       AppendClosed(nil, 14, id),
		"borrower":     AppendBorrower(nil, 15, ids.JobID(ids.MaxHome.ID(7))),
	}
}

func TestRecordedRecords(t *testing.T) {
	now := samples()
	if *update {
		var b strings.Builder
		for _, name := range slices.Sorted(maps.Keys(now)) {
			b.WriteString(name + ": " + hex.EncodeToString(now[name]) + "\n")
		}
		if err := os.WriteFile(recorded, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	data, err := os.ReadFile(recorded)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(data)), "\n")
	if len(lines) != len(now) {
		t.Errorf("%d records are recorded, there are %d samples", len(lines), len(now))
	}
	for _, line := range lines {
		name, text, _ := strings.Cut(line, ": ")
		if got := hex.EncodeToString(now[name]); got != text {
			t.Errorf("%s is written as\n%s\nand was recorded as\n%s", name, got, text)
		}
		raw, err := hex.DecodeString(text)
		if err != nil {
			t.Fatal(err)
		}
		r, seq, err := Parse(raw)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if again := written(r, seq); !reflect.DeepEqual(again, raw) {
			t.Errorf("%s is read, and written again as\n%x\nnot\n%x", name, again, raw)
		}
	}
}

// written is a record that was read as it is written.
func written(r Record, seq uint64) []byte {
	switch r := r.(type) {
	case *Options:
		return AppendOptions(nil, seq, r.No, EncodeOptions(nil, r.Opts))
	case *Submit:
		return AppendSubmit(nil, seq, r.Spec, r.Submission)
	case *Done:
		return AppendDone(nil, seq, &r.Done, r.State)
	case *Object:
		return AppendObject(nil, seq, r.ID, r.Attempt, &r.Result, r.Elsewhere)
	case *Retry:
		return AppendRetry(nil, seq, r)
	case *Forget:
		return AppendForget(nil, seq, r.IDs)
	case *Actor:
		return AppendActor(nil, seq, r)
	case *Packed:
		return AppendPacked(nil, seq, r.ID, r.Size)
	case *Closed:
		return AppendClosed(nil, seq, r.Task)
	case *Borrower:
		return AppendBorrower(nil, seq, r.Job)
	}
	return nil
}

// A task's records are written and read on its path.
func BenchmarkRecords(b *testing.B) {
	id := ids.Derive(ids.RootTask(7, 1), 5)
	spec := &wire.TaskSpec{ID: id, Parent: ids.RootTask(7, 1), Args: []wire.Arg{{Value: wire.Value{Meta: []byte("f64"), Data: make([]byte, 8)}}, {Ref: id.Return(0)}}}
	done := &wire.Done{Task: id, Attempt: 1, Results: []wire.Result{{Kind: wire.ResultInline, Size: 8, Value: wire.Value{Meta: []byte("f64"), Data: make([]byte, 8)}}}}
	opts := &wire.TaskOptions{Func: "math/add", NumReturns: 1, MaxRetries: 3, Resources: []wire.Resource{{Name: "CPU", Amount: 1000}}}
	for name, write := range map[string]func([]byte) []byte{
		"submit":  func(dst []byte) []byte { return AppendSubmit(dst, 7, spec, Submission{OptsNo: 3, Born: 1e18}) },
		"done":    func(dst []byte) []byte { return AppendDone(dst, 7, done, task.Finished) },
		"object":  func(dst []byte) []byte { return AppendObject(dst, 7, id.Put(1), 0, &done.Results[0], 0) },
		"options": func(dst []byte) []byte { return AppendOptions(dst, 7, 3, EncodeOptions(nil, opts)) },
	} {
		data := write(nil)
		b.Run("write/"+name, func(b *testing.B) {
			b.ReportAllocs()
			buf := make([]byte, 0, 1024)
			for b.Loop() {
				buf = write(buf[:0])
			}
		})
		b.Run("read/"+name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, _, err := Parse(data); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
