package shell

import (
	"testing"

	"mobula/internal/direct"
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
	for b.Loop() {
		k := n.again(own)
		k.get()
		k.Released()
	}
}

// BenchmarkOutstanding is a call with 1,000 others under way.
func BenchmarkOutstanding(b *testing.B) {
	n := bench(b)
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
		ks[i%1000] = n.again(own)
	}
	for _, k := range ks[:min(i, 1000)] {
		k.get()
	}
}

func (n *node) again(own *waiting) *Call {
	k := &Call{Own: own}
	k.ID, k.Caller, k.Bytes = caller(2), caller(2), 64
	n.p.Begin(theActor, k)
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
