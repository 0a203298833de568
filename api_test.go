package mobula

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"
	"time"

	"mobula/internal/call"
	"mobula/internal/testkit"
	"mobula/wire"
)

var (
	add  = Register2("test/add", func(_ context.Context, a, b float64) (float64, error) { return a + b, nil })
	zero = Register0("test/zero", func(context.Context) (string, error) { return "zero", nil })
	five = Register5("test/five", func(_ context.Context, a int, b string, c bool, d []int32, e float32) (string, error) {
		return strings.TrimSpace(fmt.Sprintln(a, b, c, d, e)), nil
	})
	fails = Register1("test/fails", func(_ context.Context, s string) (int, error) { return 0, fmt.Errorf("about %s: %w", s, errMine) })
	blows = Register0("test/blows", func(context.Context) (int, error) { panic("at the disco") })
	waits = Register0("test/waits", func(ctx context.Context) (int, error) { <-ctx.Done(); return 0, ctx.Err() })
	split = Register1x2("test/split", func(_ context.Context, s string) (string, int, error) { return strings.ToUpper(s), len(s), nil })
	three = Register0x3("test/three", func(context.Context) (int, string, bool, error) { return 1, "2", true, nil })
	parts = RegisterN1("test/parts", func(_ context.Context, n int) ([]int, error) {
		out := make([]int, n)
		for i := range out {
			out[i] = i * i
		}
		return out, nil
	})
	sum = Register1("test/sum", func(_ context.Context, xs []float64) (float64, error) {
		t := 0.0
		for _, x := range xs {
			t += x
		}
		return t, nil
	})
	ones = Register1("test/ones", func(ctx context.Context, n int) ([]float64, error) {
		b, err := CreateResult[float64](ctx, 0, n)
		if err != nil {
			return nil, err
		}
		for i := range b.Slice() {
			b.Slice()[i] = 1
		}
		return b.Slice(), nil
	})
	count = RegisterStream1("test/count", func(_ context.Context, n int) iter.Seq2[int, error] {
		return func(yield func(int, error) bool) {
			for i := range n {
				if !yield(i, nil) {
					return
				}
			}
			if n == 13 {
				yield(0, errMine)
			}
		}
	})
	nested = Register1("test/nested", func(ctx context.Context, in box) (float64, error) {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		v, err := in.Inner.Get(ctx)
		if err != nil {
			return 0, err
		}
		for _, r := range in.More {
			w, err := r.Get(ctx)
			if err != nil {
				return 0, err
			}
			v += w
		}
		return v, nil
	})
	fib = Register1("test/fib", fibBody)

	total = RegisterVar1("test/total", func(_ context.Context, scale float64, xs []float64) (float64, error) {
		t := 0.0
		for _, x := range xs {
			t += x
		}
		return scale * t, nil
	})
	turn = RegisterVarN0("test/turn", func(_ context.Context, xs []float64) ([]float64, error) {
		slices.Reverse(xs)
		return xs, nil
	})

	inc = Register1("test/inc", func(_ context.Context, n int) (int, error) { return n + 1, nil })

	errMine = errors.New("my own error")
)

type box struct {
	Inner Ref[float64]
	More  map[string]Ref[float64]
}

func fibBody(ctx context.Context, n int) (int, error) {
	if n < 2 {
		return n, nil
	}
	a, b := fibAgain.Go(ctx, V(n-1)), fibAgain.Go(ctx, V(n-2))
	x, err := a.Get(ctx)
	if err != nil {
		return 0, err
	}
	y, err := b.Get(ctx)
	return x + y, err
}

var fibAgain Func1[int, int]

func init() {
	fibAgain = fib
	RegisterError("test/mine", errMine)
}

func must[T any](t *testing.T, want T) func(T, error) {
	t.Helper()
	return func(got T, err error) {
		t.Helper()
		if err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("got %v, %v, want %v", got, err, want)
		}
	}
}

func TestValuesAndReferencesAsArguments(t *testing.T) {
	_, ctx, _ := startFake(t)
	x := add.Go(ctx, V(1.0), V(2.0))
	must(t, 6.0)(add.Go(ctx, x, V(3.0)).Get(ctx))
	must(t, 3.0)(x.Get(ctx)) // again
	must(t, "zero")(zero.Go(ctx).Get(ctx))
	must(t, "1 two true [3] 4")(five.Go(ctx, V(1), V("two"), V(true), V([]int32{3}), V(float32(4))).Get(ctx))
	must(t, 55)(fib.Go(ctx, V(10)).Get(ctx))
}

func TestErrorsArriveTyped(t *testing.T) {
	_, ctx, _ := startFake(t)
	_, err := fails.Go(ctx, V("this")).Get(ctx)
	var te *TaskError
	if !errors.Is(err, errMine) || !errors.Is(err, ErrTaskFailed) || !errors.As(err, &te) || te.Name != "test/fails" {
		t.Errorf("got %#v", err)
	}
	if _, err := blows.Go(ctx).Get(ctx); !errors.Is(err, ErrPanic) || !errors.Is(err, ErrTaskFailed) {
		t.Errorf("a panic: %v", err)
	}
	// A failed argument fails the task with its error, whether known already or not.
	if _, err := inc.Go(ctx, fails.Go(ctx, V("arg"))).Get(ctx); !errors.Is(err, errMine) {
		t.Errorf("a failed argument: %v", err)
	}
	x := add.Go(ctx, V(1.0), Ref[float64]{})
	if _, err := x.Get(ctx); !errors.Is(err, ErrInvalid) {
		t.Errorf("a zero reference: %v", err)
	}
	if _, err := add.Go(ctx, x, V(1.0)).Get(ctx); !errors.Is(err, ErrInvalid) {
		t.Errorf("a failed reference as argument: %v", err)
	}
	if _, err := add.Go(ctx, nil, V(1.0)).Get(ctx); !errors.Is(err, ErrInvalid) {
		t.Errorf("a nil argument: %v", err)
	}
	if _, err := add.Go(t.Context(), V(1.0), V(1.0)).Get(ctx); !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), "context") {
		t.Errorf("a context of no cluster: %v", err)
	}
}

func TestSeveralResults(t *testing.T) {
	_, ctx, _ := startFake(t)
	s, n := split.Go(ctx, V("abc"))
	must(t, 3)(n.Get(ctx))
	must(t, "ABC")(s.Get(ctx))
	a, b, c := three.Go(ctx)
	must(t, true)(c.Get(ctx))
	must(t, "2")(b.Get(ctx))
	must(t, 1)(a.Get(ctx))
	refs := parts.Go(ctx, 3000, V(3000))
	all, err := GetAll(ctx, refs)
	if err != nil || len(all) != 3000 || all[2999] != 2999*2999 {
		t.Errorf("%d results, %v", len(all), err)
	}
	for _, r := range parts.Go(ctx, 3, V(2)) {
		if _, err := r.Get(ctx); !errors.Is(err, ErrReturnMismatch) {
			t.Errorf("two results for three: %v", err)
		}
	}
	if refs := parts.Go(ctx, 0, V(2)); len(refs) != 1 || !errors.Is(refs[0].Err(), ErrInvalid) {
		t.Errorf("zero results: %v", refs)
	}
	if s, n := split.Go(t.Context(), V("x")); !errors.Is(s.Err(), ErrInvalid) || !errors.Is(n.Err(), ErrInvalid) {
		t.Errorf("a failed call's results: %v, %v", s.Err(), n.Err())
	}
}

func TestWaitGivesTheFirst(t *testing.T) {
	_, ctx, _ := startFake(t)
	slow := waits.Go(ctx)
	fast := parts.Go(ctx, 1, V(1))[0]
	ready, rest, err := Wait(ctx, []Ref[int]{slow, fast}, 1)
	if err != nil || len(ready) != 1 || ready[0] != fast || len(rest) != 1 || rest[0] != slow {
		t.Errorf("ready %v, rest %v, %v", ready, rest, err)
	}
	short, cancel := context.WithTimeout(ctx, time.Millisecond)
	defer cancel()
	ready, rest, err = Wait(short, []Ref[int]{slow, fast}, 2)
	if !errors.Is(err, ErrGetTimeout) || !errors.Is(err, context.DeadlineExceeded) || len(ready) != 1 || len(rest) != 1 {
		t.Errorf("at the deadline: %v, %v, %v", ready, rest, err)
	}
	failed := add.Go(t.Context(), V(1.0), V(1.0))
	ok := add.Go(ctx, V(1.0), V(1.0))
	if ready, rest, err := Wait(ctx, []Ref[float64]{ok, failed}, 1); err != nil || len(ready) != 1 || ready[0] != failed || len(rest) != 1 {
		t.Errorf("one that was never submitted: %v, %v, %v", ready, rest, err)
	}
	if _, err := slow.Get(short); !errors.Is(err, ErrGetTimeout) {
		t.Errorf("get at the deadline: %v", err)
	}
	if err := slow.Cancel(ctx); err != nil {
		t.Fatal(err)
	}
	if _, err := slow.Get(ctx); !errors.Is(err, ErrCancelled) || !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

func TestPutAndViews(t *testing.T) {
	_, ctx, _ := startFake(t)
	big := make([]float64, 100_000)
	for i := range big {
		big[i] = float64(i)
	}
	r, err := Put(ctx, big)
	if err != nil {
		t.Fatal(err)
	}
	must(t, 4999950000.0)(sum.Go(ctx, r).Get(ctx))
	must(t, 4999950000.0)(sum.Go(ctx, V(big)).Get(ctx)) // large, by value
	v, err := r.View(ctx)
	if err != nil {
		t.Fatal(err)
	}
	xs, err := v.Value()
	if size, e := v.Size(); err != nil || e != nil || size != 800_000 || !slices.Equal(xs, big) {
		t.Errorf("view of %d bytes: %v, %v", size, err, e)
	}
	if err := v.Close(); err != nil {
		t.Error(err)
	}
	_, e1 := v.Value()
	_, e2 := v.Size()
	for _, err := range []error{e1, e2, v.Close()} {
		if !errors.Is(err, ErrViewClosed) {
			t.Errorf("after close: %v", err)
		}
	}
	got, err := r.Get(ctx)
	if err != nil || !slices.Equal(got, big) {
		t.Errorf("get: %v", err)
	}
	got[0] = 7 // its own copy
	must(t, 4999950000.0)(sum.Go(ctx, r).Get(ctx))
	small, err := Put(ctx, map[string]int{"a": 1})
	if err != nil {
		t.Fatal(err)
	}
	must(t, map[string]int{"a": 1})(small.Get(ctx))
	sv, err := small.View(ctx)
	if err != nil {
		t.Fatal(err)
	}
	must(t, map[string]int{"a": 1})(sv.Value())
	if err := sv.Close(); err != nil {
		t.Error(err)
	}
	if err := small.Cancel(ctx); !errors.Is(err, ErrInvalid) {
		t.Errorf("cancel of a put: %v", err)
	}
}

func TestBuffersAreWrittenInPlace(t *testing.T) {
	_, ctx, f := startFake(t)
	b, err := Create[float64](ctx, 1000)
	if err != nil {
		t.Fatal(err)
	}
	for i := range b.Slice() {
		b.Slice()[i] = 2
	}
	r, err := b.Put()
	if err != nil {
		t.Fatal(err)
	}
	must(t, 2000.0)(sum.Go(ctx, r).Get(ctx))
	if _, err := b.Put(); !errors.Is(err, ErrInvalid) {
		t.Errorf("a second Put: %v", err)
	}
	ref := ones.Go(ctx, V(100_000))
	must(t, 100_000.0)(sum.Go(ctx, ref).Get(ctx))
	f.mu.Lock()
	extents := len(f.bytes)
	f.mu.Unlock()
	if extents != 2 {
		t.Errorf("%d extents were made, want one a buffer", extents)
	}
	if _, err := Create[string](ctx, 1); !errors.Is(err, ErrInvalid) {
		t.Errorf("a buffer of strings: %v", err)
	}
	if _, err := Create[byte](ctx, -1); !errors.Is(err, ErrInvalid) {
		t.Errorf("a negative buffer: %v", err)
	}
	if _, err := CreateResult[byte](ctx, 0, 1); !errors.Is(err, ErrInvalid) {
		t.Errorf("a result outside a task: %v", err)
	}
}

func TestStreams(t *testing.T) {
	_, ctx, f := startFake(t)
	var got []int
	for r, err := range count.Go(ctx, V(5), Backpressure(2)) {
		if err != nil {
			t.Fatal(err)
		}
		v, err := r.Get(ctx)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, v)
	}
	if !slices.Equal(got, []int{0, 1, 2, 3, 4}) {
		t.Errorf("got %v", got)
	}
	if o := f.lastSpec().Opts; o.NumReturns != wire.Streaming || o.Backpressure != 2 {
		t.Errorf("options %+v", o)
	}
	n := 0
	for _, err := range count.Go(ctx, V(13)) {
		if err != nil {
			if !errors.Is(err, errMine) || n != 13 {
				t.Errorf("after %d items: %v", n, err)
			}
			break
		}
		n++
	}
	s := count.Start(ctx, V(1))
	if _, ok, err := s.Next(ctx); !ok || err != nil {
		t.Errorf("first: %v, %v", ok, err)
	}
	for range 2 {
		if _, ok, err := s.Next(ctx); ok || err != nil {
			t.Errorf("past the end: %v, %v", ok, err)
		}
	}
	for range count.Go(ctx, V(1_000)) {
		break // cancels; the cluster's Close would wait for the task otherwise
	}
	for _, err := range count.Go(t.Context(), V(1)) {
		if !errors.Is(err, ErrInvalid) {
			t.Errorf("not submitted: %v", err)
		}
	}
}

func (f *fakeNode) lastSpec() *wire.TaskSpec {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.specs[len(f.specs)-1]
}

func TestReferencesInsideValues(t *testing.T) {
	_, ctx, _ := startFake(t)
	a, b := add.Go(ctx, V(1.0), V(1.0)), add.Go(ctx, V(2.0), V(2.0))
	must(t, 10.0)(nested.Go(ctx, V(box{Inner: a, More: map[string]Ref[float64]{"b": b, "c": b}})).Get(ctx))
	put, err := Put(ctx, []any{a, map[string]any{"b": b}})
	if err != nil {
		t.Fatal(err)
	}
	got, err := put.Get(ctx)
	if err != nil {
		t.Fatal(err)
	}
	v, err := got[0].(Ref[any]).Get(ctx)
	if err != nil || v != 2.0 {
		t.Errorf("inside an any: %v, %v", v, err)
	}
	var none box
	none.Inner = add.Go(t.Context(), V(1.0), V(1.0))
	if _, err := nested.Go(ctx, V(none)).Get(ctx); !errors.Is(err, ErrInvalid) {
		t.Errorf("a failed reference inside a value: %v", err)
	}
}

// A struct that embeds a reference has the reference's methods, and travels as the reference.
func TestEmbeddedReferencesTravel(t *testing.T) {
	_, ctx, _ := startFake(t)
	x := add.Go(ctx, V(1.0), V(2.0))
	must(t, 3.0)(embeds.Go(ctx, V(embedding{x})).Get(ctx))
	must(t, 3.0)(embedsDeep.Go(ctx, V(struct{ E []embedding }{[]embedding{{x}}})).Get(ctx))
}

type embedding struct{ Ref[float64] }

var (
	embeds     = Register1("test/embeds", func(ctx context.Context, e embedding) (float64, error) { return e.Get(ctx) })
	embedsDeep = Register1("test/embedsDeep", func(ctx context.Context, in struct{ E []embedding }) (float64, error) { return in.E[0].Get(ctx) })
)

func TestReleasedAndForeignReferences(t *testing.T) {
	_, ctx, f := startFake(t)
	x := add.Go(ctx, V(1.0), V(1.0))
	must(t, 2.0)(x.Get(ctx))
	x.Release()
	x.Release()
	if _, err := x.Get(ctx); !errors.Is(err, ErrObjectFreed) || !errors.Is(err, ErrObjectLost) {
		t.Errorf("released: %v", err)
	}
	_, other, _ := startFake(t)
	y := add.Go(other, V(1.0), V(1.0))
	if _, err := add.Go(ctx, y, V(1.0)).Get(ctx); !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), "another cluster") {
		t.Errorf("foreign: %v", err)
	}
	must(t, 2.0)(y.Get(ctx)) // by its own cluster, whatever the context
	if n := f.c.Handles(); n > 1 {
		t.Errorf("%d handles are held", n)
	}
}

func TestNotEncodableArgumentNamesTheFunction(t *testing.T) {
	_, ctx, _ := startFake(t)
	_, err := sendChan.Go(ctx, V(struct{ C chan int }{})).Get(ctx)
	if !errors.Is(err, ErrNotEncodable) || !strings.Contains(err.Error(), "test/chan") || !strings.Contains(err.Error(), ".C: chan int") {
		t.Errorf("got %v", err)
	}
}

var sendChan = Register1("test/chan", func(context.Context, struct{ C chan int }) (int, error) { return 0, nil })

func TestRuntimeContext(t *testing.T) {
	_, ctx, _ := startFake(t)
	driver, err := GetRuntimeContext(ctx)
	if err != nil || driver.Node != "fake" || driver.Job != "7" || driver.Namespace != "test" || driver.Task == "" || driver.Function != "" || InTask(ctx) {
		t.Errorf("driver: %+v, %v", driver, err)
	}
	task, err := whoami.Go(ctx).Get(ctx)
	if err != nil || task.Function != "test/whoami" || task.Task == driver.Task || task.Returns != 1 || task.Job != "7" {
		t.Errorf("task: %+v, %v", task, err)
	}
	if _, err := GetRuntimeContext(t.Context()); !errors.Is(err, ErrInvalid) {
		t.Errorf("outside: %v", err)
	}
}

var whoami = Register0("test/whoami", GetRuntimeContext)

func TestAfterClose(t *testing.T) {
	c, ctx, _ := startFake(t)
	x := add.Go(ctx, V(1.0), V(1.0))
	must(t, 2.0)(x.Get(ctx))
	y := waits.Go(ctx)
	if err := c.Close(ctx); err != nil {
		t.Fatal(err)
	}
	for name, get := range map[string]func() error{
		"get":  func() error { _, err := y.Get(ctx); return err },
		"call": func() error { _, err := add.Go(ctx, V(1.0), V(1.0)).Get(ctx); return err },
		"put":  func() error { _, err := Put(ctx, 1); return err },
		"wait": func() error { _, _, err := Wait(ctx, []Ref[int]{y}, 1); return err },
	} {
		if err := get(); !errors.Is(err, ErrShutdown) {
			t.Errorf("%s after close: %v", name, err)
		}
	}
}

func TestAnyNumberOfArguments(t *testing.T) {
	_, ctx, _ := startFake(t)
	refs := make([]Ref[float64], 10_000)
	for i := range refs {
		refs[i] = add.Go(ctx, V(float64(i)), V(0.5))
	}
	must(t, 2*(9999*5000+5000.0))(total.Go(ctx, V(2.0), refs).Get(ctx))
	must(t, 0.0)(total.Go(ctx, V(2.0), nil).Get(ctx))
	back, err := GetAll(ctx, turn.Go(ctx, 3, refs[:3]))
	if err != nil || !slices.Equal(back, []float64{2.5, 1.5, .5}) {
		t.Errorf("got %v, %v", back, err)
	}
	if _, err := total.Go(ctx, V(1.0), []Ref[float64]{refs[0], {}}).Get(ctx); !errors.Is(err, ErrInvalid) {
		t.Errorf("a zero reference among them: %v", err)
	}
	views, err := ViewAll(ctx, refs[:100])
	if err != nil || len(views) != 100 {
		t.Fatal(len(views), err)
	}
	for i, v := range views {
		if x, err := v.Value(); err != nil || x != float64(i)+.5 || v.Close() != nil {
			t.Errorf("view %d: %v, %v", i, x, err)
		}
	}
}

func TestCallSitesAreTheCallers(t *testing.T) {
	_, ctx, f := startFake(t)
	fresh := func(f *call.Function) *call.Function { return call.New(f.Name(), f.Shape, call.Defaults) } // call sites of first calls are recorded
	sited, sitedN := Func0[int]{fresh(sited.fn)}, FuncN0[int]{fresh(sitedN.fn)}
	sited.Go(ctx).Release()
	task := f.settled(t, 1)[0]
	sitedN.Go(ctx, 1)[0].Release()
	list := f.settled(t, 2)[1]
	for name, s := range map[string]*wire.TaskSpec{"Go": task, "Go for n": list} {
		if !strings.HasPrefix(s.Callsite, "api_test.go:") {
			t.Errorf("%s was called at %q", name, s.Callsite)
		}
	}
}

var (
	sited  = Register0("test/sited", func(context.Context) (int, error) { return 1, nil })
	sitedN = RegisterN0("test/sitedN", func(context.Context) ([]int, error) { return []int{1}, nil })
)

// settled waits until n tasks were submitted.
func (f *fakeNode) settled(t *testing.T, n int) (specs []*wire.TaskSpec) {
	t.Helper()
	testkit.Eventually(t, fmt.Sprintf("%d tasks submitted", n), func() bool {
		f.mu.Lock()
		defer f.mu.Unlock()
		specs = slices.Clone(f.specs)
		return len(specs) >= n
	})
	return specs
}
