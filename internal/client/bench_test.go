package client

import (
	"log/slog"
	"runtime"
	"syscall"
	"testing"

	"mobula/internal/ids"
	"mobula/wire"
)

// nowhere is a port that accepts every message and answers none.
type nowhere struct{}

func (nowhere) Send(...wire.Msg) error                { return nil }
func (nowhere) Close() error                          { return nil }
func (nowhere) Map(wire.Extent, bool) ([]byte, error) { return nil, nil }

func benchClient(b *testing.B) *Client {
	c := New(Config{Port: nowhere{}, Memory: nowhere{}, Log: slog.New(slog.DiscardHandler),
		Welcome: &wire.Welcome{Client: 1, Job: 7, Root: ids.RootTask(7, 1), InlineMax: 1024}})
	b.Cleanup(func() { _ = c.Close(b.Context()) })
	b.ReportAllocs()
	start := cpuTime()
	b.Cleanup(func() { b.ReportMetric(float64(cpuTime()-start)/float64(b.N), "cpu-ns/op") })
	return c
}

// cpuTime is the CPU time of this process in nanoseconds, which is meaningful on a busy machine too.
func cpuTime() int64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return u.Utime.Nano() + u.Stime.Nano()
}

// BenchmarkSubmit: with the release of the handle, and with handles that stay.
func BenchmarkSubmit(b *testing.B) {
	spec := &wire.TaskSpec{Opts: plain}
	b.Run("released", func(b *testing.B) {
		c := benchClient(b)
		for b.Loop() {
			s := *spec
			s.ID = c.root.NextTask()
			hs, _ := c.Submit(b.Context(), &s)
			hs[0].Release()
		}
	})
	b.Run("kept", func(b *testing.B) {
		c := benchClient(b)
		s := *spec
		for b.Loop() {
			s.ID = c.root.NextTask()
			_, _ = c.Submit(b.Context(), &s)
		}
	})
	b.Run("parallel", func(b *testing.B) {
		c := benchClient(b)
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				s := *spec
				s.ID = c.root.NextTask()
				hs, _ := c.Submit(b.Context(), &s)
				hs[0].Release()
			}
		})
	})
}

func BenchmarkPutGet(b *testing.B) {
	data := make([]byte, 1024)
	b.Run("put", func(b *testing.B) {
		c := benchClient(b)
		for b.Loop() {
			h, _ := c.Put(b.Context(), wire.Value{Data: data})
			h.Release()
		}
	})
	b.Run("get own", func(b *testing.B) {
		c := benchClient(b)
		h, _ := c.Put(b.Context(), wire.Value{Data: data})
		for b.Loop() {
			if _, err := c.Get1(b.Context(), h); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkGetBatch is a Get of 1000 inline results of tasks, answered in one batch.
func BenchmarkGetBatch(b *testing.B) {
	c := benchClient(b)
	const n = 1000
	for b.Loop() {
		hs := make([]*Handle, 0, n)
		answers := make([]wire.Msg, 0, n)
		for range n {
			got, _ := c.Submit(b.Context(), &wire.TaskSpec{ID: c.root.NextTask(), Opts: plain})
			hs = append(hs, got...)
			answers = append(answers, &wire.Resolved{ID: got[0].id, Fetch: true, Result: wire.Result{Kind: wire.ResultInline, Value: wire.Value{Data: []byte("x")}}})
		}
		go func() {
			for hs[n-1].res.Load() == nil { // the Get may link before or after the answers
				c.Deliver(answers)
			}
		}()
		if _, err := c.Get(b.Context(), hs...); err != nil {
			b.Fatal(err)
		}
		for _, h := range hs {
			h.Release()
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/object")
}

// BenchmarkCleanup is the cost of a reference for the garbage collector: with a cleanup each, one for sixteen, or
// none.
func BenchmarkCleanup(b *testing.B) {
	type ref struct{ h *Handle }
	for name, every := range map[string]int{"each": 1, "sixteenth": 16, "never": 1 << 30} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			h := new(Handle)
			for i := 0; b.Loop(); i++ {
				r := &ref{h}
				if i%every == 0 {
					runtime.AddCleanup(r, func(*Handle) {}, h)
				}
				kept = r
			}
		})
	}
}

var kept any
