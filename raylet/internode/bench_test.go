package internode

import (
	"testing"

	"mobula/internal/ids"
	"mobula/wire"
)

const benchTasks = 16

// path are the messages on a task's path: small tasks for a worker, and their results.
func path() map[string][]wire.Msg {
	root := ids.RootTask(1, 1)
	opts := &wire.TaskOptions{Func: "math/add", NumReturns: 1, MaxRetries: 3, Resources: []wire.Resource{{Name: "CPU", Amount: 1000}}}
	value := wire.Value{Meta: []byte("f64"), Data: make([]byte, 8)}
	exec := &wire.Exec{Lease: 77}
	var done []wire.Msg
	for i := range benchTasks {
		id := ids.Derive(root, uint64(i))
		spec := &wire.TaskSpec{ID: id, Parent: root, Opts: opts, Args: []wire.Arg{{Value: value}, {Ref: root.Return(0)}}}
		exec.Tasks = append(exec.Tasks, wire.ExecTask{Spec: spec, Args: []wire.ArgValue{{Index: 1, Result: wire.Result{Kind: wire.ResultInline, Size: 8, Value: value}}}})
		done = append(done, &wire.Done{Task: id, Lease: 77, Attempt: 1, Times: wire.Times{Received: 1e18, Started: 1e18, Ended: 1e18},
			Results: []wire.Result{{Kind: wire.ResultInline, Size: 8, Value: value}}})
	}
	return map[string][]wire.Msg{"Exec": {exec}, "Done": done}
}

func envelope(name string, msgs []wire.Msg) Msg {
	items := []ClientMsgs{{Client: 9, Msgs: msgs}}
	if name == "Exec" {
		return &ToClients{Job: 1, Items: items}
	}
	return &FromClients{Job: 1, Items: items}
}

// Each case stands beside the local protocol's codec alone.
func BenchmarkEncode(b *testing.B) {
	for name, msgs := range path() {
		b.Run(name+"/local", func(b *testing.B) {
			var e wire.Encoder
			var buf []byte
			b.ReportAllocs()
			for b.Loop() {
				buf = buf[:0]
				for _, m := range msgs {
					buf, _ = e.Append(buf, m)
				}
			}
			perTask(b)
		})
		b.Run(name+"/between", func(b *testing.B) {
			e := Encoder{Agreed: Version}
			var buf []byte
			m := envelope(name, msgs)
			b.ReportAllocs()
			for b.Loop() {
				buf, _ = e.Append(buf[:0], m)
			}
			perTask(b)
		})
	}
}

func BenchmarkDecode(b *testing.B) {
	for name, msgs := range path() {
		var local wire.Encoder
		var bare []byte
		for _, m := range msgs {
			bare, _ = local.Append(bare, m)
		}
		b.Run(name+"/local", func(b *testing.B) {
			var d wire.Decoder
			b.ReportAllocs()
			for b.Loop() {
				if _, err := d.Messages(nil, bare); err != nil {
					b.Fatal(err)
				}
			}
			perTask(b)
		})
		payload := encode(b, envelope(name, msgs))
		b.Run(name+"/between", func(b *testing.B) {
			var d Decoder
			b.ReportAllocs()
			for b.Loop() {
				if err := d.Decode(payload, func(Msg) error { return nil }); err != nil {
					b.Fatal(err)
				}
			}
			perTask(b)
		})
	}
}

func perTask(b *testing.B) {
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*benchTasks), "ns/task")
}

// An envelope costs nothing when it is written. When it is read it has three allocations: itself, its list of clients, and the list of messages of one.
func TestAllocationsOfAnEnvelope(t *testing.T) {
	for name, msgs := range path() {
		m := envelope(name, msgs)
		e := Encoder{Agreed: Version}
		buf, _ := e.Append(nil, m)
		if n := testing.AllocsPerRun(100, func() { buf, _ = e.Append(buf[:0], m) }); n > 0 {
			t.Errorf("encoding %s allocates %.1f times", name, n)
		}
		var local wire.Encoder
		var bare []byte
		for _, m := range msgs {
			bare, _ = local.Append(bare, m)
		}
		var w wire.Decoder
		alone := testing.AllocsPerRun(100, func() { _, _ = w.Messages(nil, bare) })
		var d Decoder
		nothing := func(Msg) error { return nil }
		if n := testing.AllocsPerRun(100, func() { _ = d.Decode(append(buf[:0:0], buf...), nothing) }); n > alone+1+3 {
			t.Errorf("decoding %s allocates %.1f times, its messages alone %.1f", name, n, alone)
		}
	}
}
