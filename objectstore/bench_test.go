package objectstore

import (
	"testing"

	"mobula/internal/ids"
	"mobula/wire"
)

// BenchmarkCoreObject is one object's life in the core: create, seal, pin for a reader, unpin, free.
func BenchmarkCoreObject(b *testing.B) {
	c := NewCore(DefaultConfig(1 << 30))
	now := int64(1e9)
	step := func(ev Event) []Effect {
		now++
		return c.Step(now, ev)
	}
	step(ClientJoined{Client: 1})
	drain := func(fs []Effect) {
		for _, f := range fs {
			if r, ok := f.(Reserve); ok {
				step(ReserveDone{Job: r.Job})
			}
		}
	}
	meta := []byte("meta")
	for i := 0; b.Loop(); i++ {
		id := root.Put(uint32(i))
		drain(step(FromClient{1, &wire.Create{Req: 1, ID: id, Size: 128 << 10}}))
		step(SealObject{Client: 1, ID: id, Size: 128 << 10, Meta: meta})
		step(PinForGet{Client: 1, ID: id})
		step(FromClient{1, &wire.Unpin{ID: id, N: 1}})
		step(Free{[]ids.ObjectID{id}})
	}
	if c.alloc.Held() != 0 {
		b.Fatal("bytes are left")
	}
}

// BenchmarkCoreArgs pins and unpins one argument of a task.
func BenchmarkCoreArgs(b *testing.B) {
	w := newWorld(b, testConfig(1<<30))
	w.join(1)
	w.put(1, put(1), 1<<20)
	c, now := w.c, w.now
	list := []ids.ObjectID{put(1)}
	for i := 0; b.Loop(); i++ {
		t := task(i & 1023)
		c.Step(now, PinArgs{Job: 1, Task: t, Worker: 1, IDs: list})
		c.Step(now, UnpinArgs{Task: t})
	}
}

// BenchmarkCorePack packs values of 1 KiB, a thousand at a time.
func BenchmarkCorePack(b *testing.B) {
	c := NewCore(DefaultConfig(1 << 30))
	c.Step(1e9, ClientJoined{Client: 1})
	data := make([]byte, 1024)
	n := 0
	for b.Loop() {
		p := Pack{Job: 1, Values: make([]PackValue, 1000)}
		f := Free{}
		for i := range p.Values {
			n++
			p.Values[i] = PackValue{root.Return(n), wire.Value{Meta: []byte{1}, Data: data}}
			f.IDs = append(f.IDs, p.Values[i].ID)
		}
		for _, e := range c.Step(1e9, p) {
			if r, ok := e.(Reserve); ok {
				c.Step(1e9, ReserveDone{Job: r.Job})
			}
		}
		c.Step(1e9, f)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/1000, "ns/value")
}
