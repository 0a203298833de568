package harness

import (
	"bytes"
	"context"
	"time"

	"mobula"
)

// What tests of several packages run.
var (
	// Add adds two numbers.
	Add = mobula.Register2("e2e/add", func(_ context.Context, a, b float64) (float64, error) { return a + b, nil })
	// Fill makes an array of n numbers v.
	Fill = mobula.Register2("e2e/fill", func(_ context.Context, n int, v float64) ([]float64, error) {
		out := make([]float64, n)
		for i := range out {
			out[i] = v
		}
		return out, nil
	})
	// Sum adds the numbers of an array.
	Sum = mobula.Register1("e2e/sum", func(_ context.Context, xs []float64) (float64, error) {
		var s float64
		for _, x := range xs {
			s += x
		}
		return s, nil
	})
	// Boom panics.
	Boom = mobula.Register0("e2e/boom", func(context.Context) (int, error) { panic("boom") })
	// Sleepy takes some milliseconds, or until its context ends, and gives v.
	Sleepy = mobula.Register2("e2e/sleepy", func(ctx context.Context, ms, v int) (int, error) {
		t := time.NewTimer(time.Duration(ms) * time.Millisecond)
		defer t.Stop()
		select {
		case <-t.C:
			return v, nil
		case <-ctx.Done():
			return 0, context.Cause(ctx)
		}
	})
	// Blocks is a task of graphs that makes an array of so many MiB, of one byte.
	Blocks = mobula.Register2("e2e/blocks", func(_ context.Context, mib, fill int) ([]byte, error) {
		return bytes.Repeat([]byte{byte(fill)}, mib<<20), nil
	})
	// Totals is a task of graphs that adds the first numbers of lists.
	Totals = mobula.Register1("e2e/totals", func(_ context.Context, xs [][]int) (int, error) {
		n := 0
		for _, x := range xs {
			n += x[0]
		}
		return n, nil
	})
)
