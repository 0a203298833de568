package wire

import (
	"testing"

	"mobula/internal/ids"
)

// The messages of a task's life, as the local path has them.

func benchSubmit() Msg {
	task := ids.RootTask(1, 1)
	opts := &TaskOptions{Func: "math/add", NumReturns: 1, MaxRetries: 3, Resources: []Resource{{"CPU", 1000}}}
	return &Submit{Spec: &TaskSpec{
		ID: ids.Derive(task, 1), Parent: task, Opts: opts,
		Args: []Arg{{Value: Value{Meta: []byte("f64"), Data: make([]byte, 8)}}, {Ref: task.Return(0)}},
	}}
}

func benchExec() Msg {
	tasks := make([]ExecTask, 16)
	for i := range tasks {
		spec := benchSubmit().(*Submit).Spec
		tasks[i] = ExecTask{Spec: spec, Args: []ArgValue{{Index: 1, Result: Result{Kind: ResultInline, Size: 8, Value: Value{Meta: []byte("f64"), Data: make([]byte, 8)}}}}}
		tasks[i].Spec.Opts = tasks[0].Spec.Opts
	}
	return &Exec{Lease: 77, Tasks: tasks}
}

func benchDone() Msg {
	return &Done{Task: ids.RootTask(1, 1), Lease: 77, Attempt: 1, Times: Times{1e18, 1e18 + 1000, 1e18 + 2000},
		Results: []Result{{Kind: ResultInline, Size: 8, Value: Value{Meta: []byte("f64"), Data: make([]byte, 8)}}}}
}

var benchMsgs = []struct {
	name  string
	msg   Msg
	tasks int
}{
	{"Submit", benchSubmit(), 1}, {"Exec16", benchExec(), 16}, {"Done", benchDone(), 1},
	{"Get", &Get{ID: ids.RootTask(1, 1).Return(0), Fetch: true}, 1},
}

func BenchmarkEncode(b *testing.B) {
	for _, c := range benchMsgs {
		b.Run(c.name, func(b *testing.B) {
			e := encoder{opts: new(OptionsCache), alias: spliceFrom}
			b.ReportAllocs()
			for b.Loop() {
				e.b = e.b[:0]
				e.message(c.msg)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*c.tasks), "ns/task")
			b.ReportMetric(float64(len(e.b))/float64(c.tasks), "bytes/task")
		})
	}
}

func BenchmarkDecode(b *testing.B) {
	for _, c := range benchMsgs {
		b.Run(c.name, func(b *testing.B) {
			data := Append(nil, c.msg)
			var d Decoder
			b.ReportAllocs()
			for b.Loop() {
				if _, err := d.message(c.msg.Kind(), data, false); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*c.tasks), "ns/task")
		})
	}
}

// The allocations of a task's messages are part of the runtime's budget.
func TestAllocationsOfATask(t *testing.T) {
	for _, c := range benchMsgs {
		data := Append(nil, c.msg)
		var d Decoder
		n := testing.AllocsPerRun(100, func() {
			if _, err := d.message(c.msg.Kind(), data, false); err != nil {
				t.Fatal(err)
			}
		})
		if per := n / float64(c.tasks); per > 3.2 { // Exec itself has two
			t.Errorf("decoding %s allocates %.1f times a task, want at most 3", c.name, per)
		}
		e := encoder{opts: new(OptionsCache)}
		e.message(c.msg)
		if n := testing.AllocsPerRun(100, func() { e.b = e.b[:0]; e.message(c.msg) }); n > 0 {
			t.Errorf("encoding %s allocates %.1f times", c.name, n)
		}
	}
}
