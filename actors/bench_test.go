package actors

import (
	"log/slog"
	"runtime"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
)

type counter struct {
	n, total int
	done     chan struct{}
}

func (c *counter) Step(int64, int) []struct{} {
	if c.n++; c.n == c.total {
		close(c.done)
	}
	return nil
}

func benchPiped(b *testing.B, thread bool) {
	s := system(b, Config{})
	c := &counter{total: b.N, done: make(chan struct{})}
	r, err := Spawn(s, Spec[int, struct{}]{Kind: "bench", Name: "piped", Thread: thread,
		New: func(Start) (Core[int, struct{}], []int, error) { return c, nil, nil }})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	b.ResetTimer()
	for i := range b.N {
		for r.Post(i) != nil { // full: let it catch up, as a bounded mailbox asks
			runtime.Gosched()
		}
	}
	<-c.done
}

func BenchmarkPiped(b *testing.B)       { benchPiped(b, false) }
func BenchmarkPipedThread(b *testing.B) { benchPiped(b, true) }

func BenchmarkPipedProtoactor(b *testing.B) {
	as := system(b, Config{}).as
	done := make(chan struct{})
	n := 0
	pid := as.Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
		if _, ok := ctx.Message().(int); ok {
			if n++; n == b.N {
				close(done)
			}
		}
	}))
	b.ReportAllocs()
	b.ResetTimer()
	for i := range b.N {
		as.Root.Send(pid, i)
	}
	<-done
}

// hopper sends a countdown to its peer.
type hopper struct{ done chan struct{} }

func (h hopper) Step(_ int64, n int) []int {
	if n == 0 {
		close(h.done)
		return nil
	}
	return []int{n - 1}
}

func benchHop(b *testing.B, thread bool) {
	s := system(b, Config{})
	h := hopper{make(chan struct{})}
	var refs [2]*Ref[int]
	for i := range refs {
		r, err := Spawn(s, Spec[int, int]{Kind: "bench", Name: []string{"a", "b"}[i], Thread: thread,
			New: func(Start) (Core[int, int], []int, error) { return h, nil, nil },
			Do:  func(_ *Ref[int], n int) { _ = refs[1-i].Post(n) }})
		if err != nil {
			b.Fatal(err)
		}
		refs[i] = r
	}
	b.ReportAllocs()
	b.ResetTimer()
	_ = refs[0].Post(b.N)
	<-h.done
}

func BenchmarkHop(b *testing.B)       { benchHop(b, false) }
func BenchmarkHopThread(b *testing.B) { benchHop(b, true) }

func BenchmarkHopProtoactor(b *testing.B) {
	as := system(b, Config{}).as
	done := make(chan struct{})
	var pids [2]*actor.PID
	for i := range pids {
		pids[i] = as.Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
			if n, ok := ctx.Message().(int); ok {
				if n == 0 {
					close(done)
					return
				}
				ctx.Send(pids[1-i], n-1)
			}
		}))
	}
	b.ReportAllocs()
	b.ResetTimer()
	as.Root.Send(pids[0], b.N)
	<-done
}

// BenchmarkSystem is the cold start of an empty tree, and its stop.
func BenchmarkSystem(b *testing.B) {
	for b.Loop() {
		s := NewSystem(Config{})
		stopTree(b, s)
	}
}

// BenchmarkSystemMemory reports the live heap that one idle system keeps.
func BenchmarkSystemMemory(b *testing.B) {
	heap := func() uint64 {
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := heap()
	bare := actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return slog.New(slog.DiscardHandler) }))
	protoactor := heap() - before
	bare.Shutdown()
	runtime.KeepAlive(bare)
	before = heap()
	begin := time.Now()
	s := NewSystem(Config{})
	took := time.Since(begin)
	after := heap()
	for b.Loop() {
		_ = s.Tree()
	}
	b.ReportMetric(float64(protoactor), "B-protoactor") // after the loop, whose start resets metrics
	b.ReportMetric(float64(after-before), "B-idle")
	b.ReportMetric(float64(took.Microseconds()), "us-start")
	stopTree(b, s)
}
