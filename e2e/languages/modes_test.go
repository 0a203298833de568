package languages

import (
	"context"
	"errors"
	"runtime"
	"testing"

	"mobula"
	"mobula/e2e/harness"
	"mobula/internal/testkit"
	"mobula/mobulatest"
)

var fails = mobula.Register1("e2e/fails", func(_ context.Context, msg string) (int, error) { return 0, errors.New(msg) })

func fibonacci(ctx context.Context, n int) (int, error) {
	if n < 2 {
		return n, nil
	}
	a, b := fib.Go(ctx, mobula.V(n-1)), fib.Go(ctx, mobula.V(n-2))
	x, err := a.Get(ctx)
	if err != nil {
		return 0, err
	}
	y, err := b.Get(ctx)
	return x + y, err
}

// fib calls itself, so it is registered when it can be named.
var fib mobula.Func1[int, int]

func init() { fib = mobula.Register1("e2e/fib", fibonacci) }

// modes runs a test embedded, and with worker processes.
func modes(t *testing.T, f func(t *testing.T, ctx context.Context), opts ...mobula.StartOption) {
	for _, m := range []struct {
		name string
		opts []mobula.StartOption
	}{{"embedded", nil}, {"process", []mobula.StartOption{mobula.WithProcesses()}}} {
		t.Run(m.name, func(t *testing.T) {
			c := mobulatest.Start(t, append(m.opts, opts...)...)
			ctx, cancel := context.WithTimeout(t.Context(), testkit.Patience())
			defer cancel()
			f(t, c.Context(ctx))
		})
	}
}

func TestTasks(t *testing.T) {
	modes(t, func(t *testing.T, ctx context.Context) {
		x := harness.Add.Go(ctx, mobula.V(1.0), mobula.V(2.0))
		if v, err := harness.Add.Go(ctx, x, mobula.V(3.0)).Get(ctx); err != nil || v != 6 {
			t.Fatalf("1+2+3 = %v, %v", v, err)
		}
		const n = 5000
		refs := make([]mobula.Ref[float64], n)
		for i := range refs {
			refs[i] = harness.Add.Go(ctx, mobula.V(float64(i)), mobula.V(1.0))
		}
		got, err := mobula.GetAll(ctx, refs)
		if err != nil {
			t.Fatal(err)
		}
		for i, v := range got {
			if v != float64(i)+1 {
				t.Fatalf("task %d gave %v", i, v)
			}
		}
	})
}

func TestLargeValues(t *testing.T) {
	modes(t, func(t *testing.T, ctx context.Context) {
		const n = 1 << 20
		big := harness.Fill.Go(ctx, mobula.V(n), mobula.V(1.0))
		if s, err := harness.Sum.Go(ctx, big).Get(ctx); err != nil || s != n {
			t.Fatalf("sum of a stored result: %v, %v", s, err)
		}
		xs := make([]float64, n)
		xs[7] = 5
		ref, err := mobula.Put(ctx, xs)
		if err != nil {
			t.Fatal(err)
		}
		if s, err := harness.Sum.Go(ctx, ref).Get(ctx); err != nil || s != 5 {
			t.Fatalf("sum of a put: %v, %v", s, err)
		}
		v, err := big.View(ctx)
		if err != nil {
			t.Fatal(err)
		}
		defer v.Close()
	})
}

// Eight times the store passes through it.
func TestMoreThanTheStoreHolds(t *testing.T) {
	modes(t, func(t *testing.T, ctx context.Context) {
		const n, each = 64, 1 << 20
		refs := make([]mobula.Ref[[]float64], n)
		for i := range refs {
			refs[i] = harness.Fill.Go(ctx, mobula.V(each), mobula.V(float64(i)))
		}
		for i, r := range refs {
			if s, err := harness.Sum.Go(ctx, r).Get(ctx); err != nil || s != float64(i*each) {
				t.Fatalf("object %d: sum %v, %v", i, s, err)
			}
		}
	})
}

func TestErrorsKeepTheirNames(t *testing.T) {
	modes(t, func(t *testing.T, ctx context.Context) {
		_, err := fails.Go(ctx, mobula.V("no such thing")).Get(ctx)
		if !errors.Is(err, mobula.ErrTaskFailed) {
			t.Errorf("a failing task: %v", err)
		}
		_, err = harness.Boom.Go(ctx).Get(ctx)
		if !errors.Is(err, mobula.ErrPanic) {
			t.Errorf("a panicking task: %v", err)
		}
		if v, err := harness.Add.Go(ctx, mobula.V(1.0), mobula.V(1.0)).Get(ctx); err != nil || v != 2 {
			t.Errorf("after a panic: %v, %v", v, err)
		}
	})
}

func TestRecursionOnOneCPU(t *testing.T) {
	modes(t, func(t *testing.T, ctx context.Context) {
		if v, err := fib.Go(ctx, mobula.V(10)).Get(ctx); err != nil || v != 55 {
			t.Fatalf("fib(10) = %v, %v", v, err)
		}
	}, mobula.WithCPUs(1))
}

func TestActorsKeepOrder(t *testing.T) {
	modes(t, func(t *testing.T, ctx context.Context) {
		a, err := harness.CounterType.Spawn(ctx, mobula.V(0))
		if err != nil {
			t.Fatal(err)
		}
		refs := make([]mobula.Ref[int], 1000)
		for i := range refs {
			refs[i] = harness.CounterInc.Go(ctx, a, mobula.V(1))
		}
		got, err := mobula.GetAll(ctx, refs)
		if err != nil {
			t.Fatal(err)
		}
		for i, v := range got {
			if v != i+1 {
				t.Fatalf("call %d gave %d", i, v)
			}
		}
	})
}

func TestNamedActors(t *testing.T) {
	modes(t, func(t *testing.T, ctx context.Context) {
		first, err := harness.CounterType.Spawn(ctx, mobula.V(0), mobula.Named("prod", "hits"))
		if err != nil {
			t.Fatal(err)
		}
		defer runtime.KeepAlive(first) // it ends with its last handle
		a, err := harness.CounterType.Spawn(ctx, mobula.V(0), mobula.Named("prod", "hits"))
		if err == nil {
			_, err = harness.CounterInc.Go(ctx, a, mobula.V(1)).Get(ctx)
		}
		if !errors.Is(err, mobula.ErrNameTaken) {
			t.Errorf("a second actor of the name: %v", err)
		}
	})
}
