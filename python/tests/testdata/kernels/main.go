// Kernels is the Go program whose functions test_golang.py calls.
package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"strings"
	"time"
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"mobula"
	_ "mobula/arrowipc"
)

var errNegative = errors.New("negative")

func init() {
	mobula.RegisterError("kernels/negative", errNegative)
	mobula.RegisterErrorType[*missing]("kernels/missing")
	mobula.RegisterErrorType[*lacking]("kernels/lacking")

	mobula.Register2("math/add", func(_ context.Context, a, b float64) (float64, error) { return a + b, nil })
	mobula.Register1("kernels/echo", func(_ context.Context, v any) (any, error) { return v, nil })
	mobula.Register1("kernels/total", func(_ context.Context, xs []float64) (sum float64, err error) {
		for _, x := range xs {
			sum += x
		}
		return sum, nil
	})
	mobula.Register2("kernels/scale", func(_ context.Context, xs []float64, by float64) ([]float64, error) {
		out := make([]float64, len(xs))
		for i, x := range xs {
			out[i] = x * by
		}
		return out, nil
	})
	mobula.Register1("kernels/count", func(_ context.Context, words map[string]int) (int, error) { return len(words), nil })
	mobula.Register1x2("kernels/split", func(_ context.Context, s string) (string, string, error) {
		a, b, _ := strings.Cut(s, " ")
		return a, b, nil
	})
	mobula.RegisterStream1("kernels/range", func(_ context.Context, n int) iter.Seq2[int, error] {
		return func(yield func(int, error) bool) {
			for i := range n {
				if !yield(i, nil) {
					return
				}
			}
		}
	})
	mobula.Register1("kernels/later", func(_ context.Context, r []mobula.Ref[float64]) (mobula.Ref[float64], error) { return r[0], nil })

	// where names what the process has mapped where an argument lies.
	mobula.Register1("kernels/where", func(_ context.Context, xs []float64) (string, error) {
		return where(unsafe.Pointer(unsafe.SliceData(xs)))
	})
	mobula.Register1("kernels/where-rows", func(_ context.Context, b arrow.RecordBatch) (string, error) {
		return where(unsafe.Pointer(unsafe.SliceData(b.Column(0).(*array.Float64).Float64Values())))
	})
	mobula.Register1("kernels/rows", func(_ context.Context, b arrow.RecordBatch) (float64, error) {
		sum := 0.0
		for _, x := range b.Column(0).(*array.Float64).Float64Values() {
			sum += x
		}
		return sum, nil
	})
	mobula.Register1("kernels/make-rows", makeRows)

	mobula.Register1("kernels/fail", fail)
	mobula.Register1("kernels/cancelled", func(ctx context.Context, path string) (int, error) {
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			return 0, err
		}
		<-ctx.Done()
		return 0, ctx.Err()
	})
	// Its first attempt says its process' number in a file and waits to be killed; a later one says that it is one.
	mobula.Register1("kernels/killed", func(ctx context.Context, path string) (string, error) {
		if _, err := os.Stat(path); err == nil {
			return "again", nil
		}
		if err := os.WriteFile(path+".new", fmt.Appendf(nil, "%d", os.Getpid()), 0o600); err != nil {
			return "", err
		}
		if err := os.Rename(path+".new", path); err != nil {
			return "", err
		}
		select {
		case <-ctx.Done():
		case <-time.After(time.Minute):
		}
		return "not killed", nil
	})
	// Python calls Go, which calls Python.
	upper := mobula.PythonFunc1[string, string]("helpers_of_go", "shout")
	mobula.Register1("kernels/through", func(ctx context.Context, s string) (string, error) { return upper.Go(ctx, mobula.V(s)).Get(ctx) })

	mobula.Register1("kernels/lack", func(ctx context.Context, x float64) (int, error) {
		r, err := mobula.Put(ctx, x)
		if err != nil {
			return 0, err
		}
		return 0, fmt.Errorf("of no use: %w", &lacking{r})
	})
	lacks := mobula.PythonFunc1[float64, float64]("helpers_of_go", "lacks")
	mobula.Register1("kernels/lack-through", func(ctx context.Context, x float64) (float64, error) {
		v, err := lacks.Go(ctx, mobula.V(x)).Get(ctx)
		if err != nil {
			err = fmt.Errorf("through Go: %w", err)
		}
		return v, err
	})

	counters := mobula.RegisterActor1("app/counter", func(_ context.Context, n int) (*counter, error) {
		if n < 0 {
			return nil, fmt.Errorf("from %d: %w", n, errNegative)
		}
		return &counter{n}, nil
	})
	mobula.RegisterMethod1(counters, "Inc", (*counter).inc)
	mobula.RegisterMethod0(counters, "PID", func(*counter, context.Context) (int, error) { return os.Getpid(), nil })
	mobula.Register1("kernels/of", func(ctx context.Context, a mobula.ActorRef[counter]) (mobula.ActorRef[counter], error) { return a, nil })
}

// lacking is an error with a reference in it.
type lacking struct{ Part mobula.Ref[float64] }

func (*lacking) Error() string { return "it lacks something" }

type counter struct{ n int }

func (c *counter) inc(_ context.Context, by int) (int, error) {
	c.n += by
	return c.n, nil
}

// missing is an error type of the program's own.
type missing struct {
	Row   int
	Table string
}

func (m *missing) Error() string { return fmt.Sprintf("no row %d in %s", m.Row, m.Table) }

func fail(_ context.Context, how string) (int, error) {
	switch how {
	case "own":
		return 0, fmt.Errorf("looking up %q: %w", how, errNegative)
	case "typed":
		return 0, fmt.Errorf("looking up %q: %w", how, &missing{Row: 7, Table: "t"})
	case "sentinel":
		return 0, fmt.Errorf("looking up %q: %w", how, mobula.ErrNotFound)
	case "panic":
		panic("out of luck")
	}
	return 0, errors.New("plain words")
}

func makeRows(_ context.Context, n int) (arrow.RecordBatch, error) {
	b := array.NewRecordBuilder(memory.DefaultAllocator, arrow.NewSchema([]arrow.Field{{Name: "x", Type: arrow.PrimitiveTypes.Float64}, {Name: "s", Type: arrow.BinaryTypes.String}}, nil))
	for i := range n {
		b.Field(0).(*array.Float64Builder).Append(float64(i))
		b.Field(1).(*array.StringBuilder).Append(fmt.Sprint(i))
	}
	return b.NewRecordBatch(), nil
}

func where(p unsafe.Pointer) (string, error) {
	f, err := os.Open("/proc/self/maps")
	if err != nil {
		return "", err
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var from, to uintptr
		if _, err := fmt.Sscanf(lines.Text(), "%x-%x", &from, &to); err == nil && from <= uintptr(p) && uintptr(p) < to {
			return strings.Join(strings.Fields(lines.Text())[5:], " "), nil
		}
	}
	return "", fmt.Errorf("%p is not mapped", p)
}

func main() {
	mobula.Main(func(context.Context, *mobula.Cluster) error {
		return errors.New("kernels only serves the tests of Python")
	})
}
