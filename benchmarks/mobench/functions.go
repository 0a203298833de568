package main

import (
	"context"
	"fmt"
	"net"
	"runtime/metrics"
	"time"

	"mobula"
	"mobula/benchmarks/floor"
)

// The tasks of the cases. Results say enough to be checked.
var (
	echo  = mobula.Register1("mobench/echo", func(_ context.Context, i int) (int, error) { return i, nil })
	inc   = mobula.Register1("mobench/inc", func(_ context.Context, i int) (int, error) { return i + 1, nil })
	add   = mobula.Register2("mobench/add", func(_ context.Context, a, b int) (int, error) { return a + b, nil })
	total = mobula.RegisterVar0("mobench/total", func(_ context.Context, xs []int) (int, error) {
		sum := 0
		for _, x := range xs {
			sum += x
		}
		return sum, nil
	})
	several = mobula.RegisterN1("mobench/several", func(_ context.Context, n int) ([]int, error) {
		out := make([]int, n)
		for i := range out {
			out[i] = i
		}
		return out, nil
	})
	after = mobula.Register2("mobench/after", func(_ context.Context, gate, i int) (int, error) { return gate + i, nil })
	blob  = mobula.Register2("mobench/blob", func(ctx context.Context, bytes, mark int) ([]byte, error) {
		buf, err := mobula.CreateResult[byte](ctx, 0, bytes)
		if err != nil {
			return nil, err
		}
		s := buf.Slice()
		clear(s)
		s[0], s[len(s)-1] = byte(mark), byte(mark)
		return s, nil
	})
	bytesOf  = mobula.Register1("mobench/bytes", func(_ context.Context, s []byte) (int, error) { return len(s), nil })
	sum      = mobula.Register1("mobench/sum", func(_ context.Context, xs []float64) (float64, error) { return floor.SumFloat64(xs), nil })
	first    = mobula.Register1("mobench/first", func(_ context.Context, xs []float64) (float64, error) { return xs[0], nil })
	gate     = mobula.Register1("mobench/gate", waitAtGate, mobula.Retries(0))
	getLarge = mobula.Register1("mobench/get-large", viewLarge)
)

// counter is the actor of the cases.
type counter struct{ n int }

func (c *counter) Inc(_ context.Context, by int) (int, error) { c.n += by; return c.n, nil }

var (
	counterType = mobula.RegisterActor0("mobench/counter", func(context.Context) (*counter, error) { return &counter{}, nil })
	counterInc  = mobula.RegisterMethod1(counterType, "Inc", (*counter).Inc)
)

// box carries a reference that its task gets by itself.
type box struct{ Array mobula.Ref[[]byte] }

// looked is what a first view cost.
type looked struct {
	Seconds   float64
	Allocated int64 // bytes, on the heap
	Anonymous int64 // bytes that the process has more
	Touch     float64
	Bytes     int
}

// viewLarge gets an array for the first time in its process.
func viewLarge(ctx context.Context, b box) (looked, error) {
	before := allocated()
	m, err := memoryOf("self")
	if err != nil {
		return looked{}, err
	}
	begun := time.Now()
	v, err := b.Array.View(ctx)
	if err != nil {
		return looked{}, err
	}
	out := looked{Seconds: time.Since(begun).Seconds()}
	defer v.Close()
	data, err := v.Value()
	if err != nil {
		return out, err
	}
	out.Bytes = len(data)
	begun = time.Now()
	x := byte(0)
	for i := 0; i < len(data); i += 4096 {
		x |= data[i]
	}
	out.Touch = time.Since(begun).Seconds()
	if x != largeMark {
		return out, fmt.Errorf("the array holds %d, want %d everywhere", x, largeMark)
	}
	out.Allocated = allocated() - before
	n, err := memoryOf("self")
	out.Anonymous = n.anon - m.anon
	return out, err
}

// allocated is how many bytes this process has allocated on its heap so far.
func allocated() int64 {
	s := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(s)
	return int64(s[0].Value.Uint64())
}

// largeMark fills the arrays of put-large and get-large.
const largeMark = 42

// waitAtGate holds its slot until the gate at that socket opens: it makes no call that would
// give the slot back.
func waitAtGate(ctx context.Context, address string) (int, error) {
	var d net.Dialer
	c, err := d.DialContext(ctx, "unix", address)
	if err != nil {
		return 0, fmt.Errorf("gate: %w", err)
	}
	defer c.Close()
	stop := context.AfterFunc(ctx, func() { _ = c.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	if _, err := c.Read(make([]byte, 1)); err != nil {
		return 0, fmt.Errorf("gate: %w", err)
	}
	return 0, nil
}
