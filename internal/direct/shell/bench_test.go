package shell

import (
	"testing"

	"mobula/internal/direct"
	"mobula/internal/ids"
)

// bench is a node whose calls are waited for by channels, and used again.
func bench(b *testing.B) *node {
	o := &direct.Outcome{Value: 1, Bytes: 8}
	n := newNode(direct.HostConfig{Groups: []int{1}, Unread: 1 << 20}, func(*direct.Incoming) direct.Finished { return direct.Finished{Outcome: o} })
	n.call(caller(1), 1).get()
	b.ReportAllocs()
	return n
}

// BenchmarkAsk is a call and its answer, without the program's values.
func BenchmarkAsk(b *testing.B) {
	n := bench(b)
	own := &waiting{end: make(chan *direct.Outcome, 1)}
	c, id := n.p.Callee(theActor), caller(2)
	for b.Loop() {
		k := again(c, id, own)
		k.get()
		k.Released()
	}
}

// BenchmarkOutstanding is a call with 1,000 others under way.
func BenchmarkOutstanding(b *testing.B) {
	n := bench(b)
	c, id := n.p.Callee(theActor), caller(2)
	var ks [1000]*Call
	i := 0
	for ; b.Loop(); i++ {
		k := ks[i%1000]
		own := &waiting{end: make(chan *direct.Outcome, 1)}
		if k != nil {
			own = k.Own.(*waiting)
			k.get()
			k.Released()
		}
		ks[i%1000] = again(c, id, own)
	}
	for _, k := range ks[:min(i, 1000)] {
		k.get()
	}
}

func again(c *Callee, by ids.TaskID, own *waiting) *Call {
	k := &Call{Own: own}
	k.ID, k.Caller, k.Bytes = by, by, 64
	c.Begin(k)
	return k
}

// BenchmarkFloor is the same with two channels and nothing else.
func BenchmarkFloor(b *testing.B) {
	ask, end := make(chan *direct.Outcome, 1), make(chan *direct.Outcome, 1)
	go func() {
		for o := range ask {
			end <- o
		}
	}()
	o := new(direct.Outcome)
	for b.Loop() {
		ask <- o
		<-end
	}
	close(ask)
}
