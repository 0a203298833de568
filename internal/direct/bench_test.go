package direct

import (
	"testing"

	"mobula/internal/ids"
)

// BenchmarkCall is what both cores take of a call in one process.
func BenchmarkCall(b *testing.B) {
	c, h := NewCaller(NewMemory(), nil), NewHost(HostConfig{Groups: []int{1}, Unread: 1 << 20}, NewHostMemory())
	by := ids.Derive(ids.RootTask(1, 1), 9)
	c.Step(0, Begin{&Call{ID: by, Caller: by}})
	c.Step(0, Opened{1, 1, 1 << 20})
	h.Step(0, Linked{1})
	first := &Incoming{ID: by}
	h.Step(0, &Arrived{1, first})
	h.Step(0, &Finished{Call: first})
	c.Step(0, &Answered{Channel: 1, No: 1, AckNo: 1, Outcome: &Outcome{}})
	h.Step(0, Acked{1, 1})
	b.ReportAllocs()
	k, in := new(Call), new(Incoming)
	o, answer := &Outcome{}, new(Answered)
	for b.Loop() {
		*k = Call{ID: by, Caller: by, Bytes: 10}
		*in = Incoming{ID: by}
		c.Step(0, Begin{k})
		h.Step(0, &Arrived{1, in})
		h.Step(0, &Finished{Call: in, Outcome: o, Bytes: 10})
		*answer = Answered{Channel: 1, No: k.no, AckNo: k.no, Outcome: o}
		c.Step(0, answer)
		h.Step(0, Acked{1, k.no})
		c.Step(0, Released{k})
	}
}
