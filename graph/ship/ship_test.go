package ship_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"mobula"
	"mobula/graph/spec"
	"mobula/mobulatest"
)

func TestMain(m *testing.M) { mobulatest.Main(m) }

// executors are all four, of a cluster that the context has.
func executors() map[string]spec.Executor {
	return map[string]spec.Executor{
		"sync": spec.Sync(), "threads": spec.Threads(4), "processes": mobula.Processes(2), "distributed": mobula.Distributed(),
	}
}

// onEach runs a test with each executor; the remote ones on worker processes.
func onEach(t *testing.T, test func(t *testing.T, ctx context.Context, x spec.Executor)) {
	ctx := mobulatest.Context(t, mobula.WithProcesses(), mobula.WithCPUs(2))
	all := executors()
	for _, name := range slices.Sorted(maps.Keys(all)) {
		t.Run(name, func(t *testing.T) { test(t, ctx, all[name]) })
	}
}

var (
	errBoom = errors.New("boom")

	add  = mobula.Register2("ship/add", func(_ context.Context, a, b int) (int, error) { return a + b, nil })
	fail = mobula.Register1("ship/fail", func(_ context.Context, a int) (int, error) {
		return 0, fmt.Errorf("with %d: %w", a, errBoom)
	})
	crash = mobula.Register1("ship/crash", func(context.Context, int) (int, error) { panic("no") })
	exit  = mobula.Register1("ship/exit", func(context.Context, int) (int, error) { os.Exit(3); return 0, nil })
	pid   = mobula.Register0("ship/pid", func(context.Context) (int, error) { return os.Getpid(), nil })
	block = mobula.Register1("ship/block", func(ctx context.Context, pipe string) (int, error) {
		f, err := os.OpenFile(pipe, os.O_WRONLY, 0)
		if err != nil {
			return 0, err
		}
		defer f.Close()
		if _, err := f.WriteString("begun\n"); err != nil {
			return 0, err
		}
		<-ctx.Done()
		_, err = f.WriteString("cancelled\n")
		return 0, errors.Join(err, ctx.Err())
	})
	flaky = mobula.Register2("ship/flaky", func(_ context.Context, file string, failures int) (int, error) {
		f, err := os.OpenFile(file, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err != nil {
			return 0, err
		}
		defer f.Close()
		if _, err := f.WriteString("."); err != nil {
			return 0, err
		}
		s, err := f.Stat()
		if err == nil && int(s.Size()) <= failures {
			err = errBoom
		}
		return int(s.Size()), err
	})
	link = mobula.Register1("ship/link", func(ctx context.Context, before []float64) ([]float64, error) {
		b, err := mobula.CreateResult[float64](ctx, 0, len(before))
		if err != nil {
			return nil, err
		}
		for i, x := range before {
			b.Slice()[i] = x + 1
		}
		return b.Slice(), nil
	})
	double = mobula.Register1("ship/double", func(ctx context.Context, r mobula.Ref[int]) (int, error) {
		n, err := r.Get(ctx)
		return 2 * n, err
	})
	boxed = mobula.Register1("ship/boxed", func(ctx context.Context, n int) (mobula.Ref[int], error) { return mobula.Put(ctx, n) })
	inner = mobula.Register1("ship/inner", func(ctx context.Context, processes bool) (int, error) {
		x := mobula.Distributed()
		if processes {
			x = mobula.Processes(1)
		}
		g := spec.New()
		return spec.Get[int](ctx, x, g, g.Task(spec.K("y"), add, g.Task(spec.K("x"), add, 1, 2), 3))
	})
)

func init() { mobula.RegisterError("ship/boom", errBoom) }

func TestTheSameResult(t *testing.T) {
	onEach(t, func(t *testing.T, ctx context.Context, x spec.Executor) {
		g := spec.New()
		one := g.Data(spec.K("one"), 1)
		two := g.Task(spec.K("two"), add, one, 1)
		three := g.Task(spec.K("x", 3), add, one, two)
		got, err := spec.Get[[]any](ctx, x, g, []any{three, []spec.Key{one, two}})
		if want := fmt.Sprint([]any{3, []any{1, 2}}); err != nil || fmt.Sprint(got) != want {
			t.Errorf("got %v, %v, want %s", got, err, want)
		}
	})
}

func TestAFailureNamesItsTask(t *testing.T) {
	onEach(t, func(t *testing.T, ctx context.Context, x spec.Executor) {
		g := spec.New()
		bad := g.Task(spec.K("bad", 0), fail, 7)
		over := g.Task(spec.K("over"), add, bad, 1)
		top := g.Task(spec.K("top"), add, over, over)
		for _, want := range []spec.Key{bad, over, top} {
			_, err := spec.Get[int](ctx, x, g, want)
			te, ok := errors.AsType[*spec.TaskError](err)
			if !ok || te.Key != bad || !errors.Is(err, errBoom) || !strings.Contains(err.Error(), "with 7: boom") || strings.Contains(err.Error(), "argument of") {
				t.Errorf("%v: got %v", want, err)
			}
		}
	})
}

func TestAPanicIsAnError(t *testing.T) {
	onEach(t, func(t *testing.T, ctx context.Context, x spec.Executor) {
		g := spec.New()
		bad := g.Task(spec.K("bad"), crash, 7)
		_, err := spec.Get[int](ctx, x, g, g.Task(spec.K("over"), add, bad, 1))
		te, ok := errors.AsType[*mobula.TaskError](err)
		if !ok || te.Stack == "" || !errors.Is(err, mobula.ErrPanic) || !errors.Is(err, mobula.ErrTaskFailed) || !strings.Contains(err.Error(), `"bad"`) {
			t.Errorf("got %v", err)
		}
	})
}

// remote runs a test with the executors that other processes work for.
func remote(t *testing.T, test func(t *testing.T, ctx context.Context, x spec.Executor), opts ...mobula.StartOption) *mobula.Cluster {
	c := mobulatest.Start(t, append([]mobula.StartOption{mobula.WithProcesses(), mobula.WithCPUs(2)}, opts...)...)
	ctx := c.Context(t.Context())
	t.Run("processes", func(t *testing.T) { test(t, ctx, mobula.Processes(2)) })
	t.Run("distributed", func(t *testing.T) { test(t, ctx, mobula.Distributed()) })
	return c
}

func TestWhatTheTasksAreCalledWithIsMoreThanTheStore(t *testing.T) {
	ctx := mobulatest.Context(t, mobula.WithProcesses(), mobula.WithCPUs(2), mobula.WithStore(8<<20))
	g := spec.New()
	var keys []spec.Key
	const n, each = 9500, 900 // bytes, which lie in the payload
	for i := range n {
		keys = append(keys, g.Task(spec.K("t", i), length, fmt.Sprintf("%0*d", each, i)))
	}
	got, err := spec.Get[[]int](ctx, mobula.Distributed(), g, keys)
	if err != nil || len(got) != n || slices.Min(got) != each || slices.Max(got) != each {
		t.Errorf("got %d results, %v", len(got), err)
	}
}

func TestACancelledRunStopsItsTasks(t *testing.T) {
	onEach(t, func(t *testing.T, ctx context.Context, x spec.Executor) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		pipe := filepath.Join(t.TempDir(), "pipe")
		if err := unix.Mkfifo(pipe, 0o600); err != nil {
			t.Fatal(err)
		}
		said := make(chan string, 1)
		go func() {
			f, err := os.Open(pipe)
			if err != nil {
				said <- err.Error()
				return
			}
			defer f.Close()
			b := make([]byte, len("begun\n"))
			if _, err := io.ReadFull(f, b); err == nil {
				cancel()
			}
			rest, _ := io.ReadAll(f)
			said <- string(rest)
		}()
		g := spec.New()
		_, err := spec.Get[int](ctx, x, g, g.Task(spec.K("over"), add, g.Task(spec.K("long"), block, pipe), 1))
		if !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
		if s := <-said; s != "cancelled\n" {
			t.Errorf("the task said %q", s)
		}
	})
}

func TestATaskRunsAgainAsItsAnnotationSays(t *testing.T) {
	onEach(t, func(t *testing.T, ctx context.Context, x spec.Executor) {
		dir := t.TempDir()
		g := spec.New()
		enough := g.Task(spec.K("enough"), flaky, filepath.Join(dir, "enough"), 5)
		g.Annotate(spec.Annotations{Retries: 5}, enough)
		if n, err := spec.Get[int](ctx, x, g, enough); n != 6 || err != nil {
			t.Errorf("got %d, %v", n, err)
		}
		never := g.Task(spec.K("never"), flaky, filepath.Join(dir, "never"), 1)
		if _, err := spec.Get[int](ctx, x, g, never); !errors.Is(err, errBoom) {
			t.Errorf("without an annotation: %v", err)
		}
	})
}

func TestATaskTakesResources(t *testing.T) {
	remote(t, func(t *testing.T, ctx context.Context, x spec.Executor) {
		g := spec.New()
		some := g.Task(spec.K("some"), add, 1, 2)
		much := g.Task(spec.K("much"), add, some, 2)
		g.Annotate(spec.Annotations{Resources: map[string]float64{"CPU": 0.5, "tape": 1}}, some)
		g.Annotate(spec.Annotations{Resources: map[string]float64{"tape": 2}}, much)
		if n, err := spec.Get[int](ctx, x, g, some); n != 3 || err != nil {
			t.Errorf("got %d, %v", n, err)
		}
		_, err := spec.Get[int](ctx, x, g, much)
		te, ok := errors.AsType[*spec.TaskError](err)
		if !ok || te.Key != much || !errors.Is(err, mobula.ErrUnschedulable) {
			t.Errorf("got %v", err)
		}
	}, mobula.WithResource("tape", 1))
}

func TestATaskThatEndsItsProcess(t *testing.T) {
	ctx := mobulatest.Context(t, mobula.WithProcesses(), mobula.WithCPUs(2))
	g := spec.New()
	over := g.Task(spec.K("over"), add, g.Task(spec.K("end"), exit, 1), 1)
	for name, x := range map[string]spec.Executor{"processes": mobula.Processes(2), "distributed": mobula.Distributed(mobula.GraphFailures(1))} {
		_, err := spec.Get[int](ctx, x, g, over)
		te, ok := errors.AsType[*spec.TaskError](err)
		if !ok || te.Key != spec.K("end") || !errors.Is(err, mobula.ErrWorkerCrashed) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func TestProcessesAreOtherProcesses(t *testing.T) {
	ctx := mobulatest.Context(t) // whose other tasks are goroutines of this process
	g := spec.New()
	if n, err := spec.Get[int](ctx, mobula.Processes(1), g, g.Task(spec.K("pid"), pid)); err != nil || n == os.Getpid() {
		t.Errorf("it ran in process %d, this one, %v", n, err)
	}
}

// Chains of results that together are ten times larger than the store: were they kept, nearly all would be spilled.
func TestIntermediatesAreFreedAsTheGraphRuns(t *testing.T) {
	const links, size = 40, 2 << 20
	c := remote(t, func(t *testing.T, ctx context.Context, x spec.Executor) {
		g := spec.New()
		at := g.Data(spec.K("link", 0), make([]float64, size/8))
		for i := range links {
			at = g.Task(spec.K("link", i+1), link, at)
		}
		got, err := spec.Get[[]float64](ctx, x, g, at)
		if err != nil || len(got) != size/8 || got[0] != links || got[len(got)-1] != links {
			t.Errorf("%d numbers, %v", len(got), err)
		}
	}, mobula.WithStore(16<<20))
	s, err := c.Status(t.Context())
	if err != nil || s.Store.SpilledEver > links*size/2 || s.Store.Limit*10 > 2*links*size {
		t.Errorf("%+v, %v", s.Store, err)
	}
}

func TestLargeLiteralsAreShippedOnce(t *testing.T) {
	remote(t, func(t *testing.T, ctx context.Context, x spec.Executor) {
		big := make([]float64, 1<<20)
		big[0] = 1
		g := spec.New()
		data := g.Data(spec.K("big"), big) // 8 MiB, in a store of 64
		var sums []spec.Key
		for i := range 20 {
			sums = append(sums, g.Task(spec.K("total", i), total, data, i))
		}
		got, err := spec.Get[[]int](ctx, x, g, sums)
		if err != nil || len(got) != 20 || got[19] != 19 {
			t.Errorf("got %v, %v", got, err)
		}
	})
}

// More arguments and levels of nesting than CBOR's decoder takes by default.
func TestManyAndDeepArguments(t *testing.T) {
	remote(t, func(t *testing.T, ctx context.Context, x spec.Executor) {
		g := spec.New()
		one := g.Task(spec.K("one"), add, 0, 1)
		list := make([]any, 150_000)
		for i := range list {
			list[i] = one
		}
		if n, err := spec.Get[int](ctx, x, g, g.Task(spec.K("sum"), sum, list)); n != len(list) || err != nil {
			t.Errorf("many arguments: got %d, %v", n, err)
		}
		var deep any = one
		for range 100 {
			deep = []any{deep}
		}
		if s, err := spec.Get[string](ctx, x, g, g.Task(spec.K("deep"), show, deep)); s != strings.Repeat("[", 100)+"1"+strings.Repeat("]", 100) || err != nil {
			t.Errorf("deep arguments: got %q, %v", s, err)
		}
	})
}

func TestManyArgumentsMakeAPayloadAnObject(t *testing.T) {
	remote(t, func(t *testing.T, ctx context.Context, x spec.Executor) {
		g := spec.New()
		one := g.Task(spec.K("one"), add, 0, 1)
		list := make([]any, 30_000)
		for i := range list {
			list[i] = i
		}
		list[17] = one
		if n, err := spec.Get[int](ctx, x, g, g.Task(spec.K("sum"), sum, list)); n != 30_000*29_999/2-17+1 || err != nil {
			t.Errorf("got %d, %v", n, err)
		}
	})
}

func TestReferencesTravelInArgumentsAndResults(t *testing.T) {
	onEach(t, func(t *testing.T, ctx context.Context, x spec.Executor) {
		r, err := mobula.Put(ctx, 21)
		if err != nil {
			t.Fatal(err)
		}
		g := spec.New()
		a := g.Task(spec.K("a"), double, r)
		b := g.Task(spec.K("b"), double, g.Task(spec.K("box"), boxed, a))
		if n, err := spec.Get[int](ctx, x, g, b); n != 84 || err != nil {
			t.Errorf("got %d, %v", n, err)
		}
	})
}

// A task that runs a graph gives its CPU back meanwhile: there is one.
func TestAGraphInATask(t *testing.T) {
	ctx := mobulatest.Context(t, mobula.WithProcesses(), mobula.WithCPUs(1))
	for _, processes := range []bool{true, false} {
		g := spec.New()
		if n, err := spec.Get[int](ctx, mobula.Distributed(), g, g.Task(spec.K("outer"), inner, processes)); n != 6 || err != nil {
			t.Errorf("%v: got %d, %v", processes, n, err)
		}
	}
}

type point struct{ X, Y int }

var (
	spot = mobula.Register2("ship/spot", func(_ context.Context, x, y int) (point, error) { return point{x, y}, nil })
	kind = mobula.Register1("ship/kind", func(_ context.Context, xs []any) (string, error) { return fmt.Sprintf("%T %T", xs[0], xs[1]), nil })
)

func TestAResultKeepsItsTypeWhereAnythingIsTaken(t *testing.T) {
	onEach(t, func(t *testing.T, ctx context.Context, x spec.Executor) {
		g := spec.New()
		a, n := g.Task(spec.K("a"), spot, 1, 2), g.Task(spec.K("n"), add, 1, 2)
		if s, err := spec.Get[string](ctx, x, g, g.Task(spec.K("kind"), kind, []spec.Key{a, n})); err != nil || s != "ship_test.point int" {
			t.Errorf("got %q, %v", s, err)
		}
		if p, err := spec.Get[any](ctx, x, g, a); err != nil || p != (point{1, 2}) {
			t.Errorf("got %#v, %v", p, err)
		}
	})
}

func TestWhatCannotBeShippedIsSaidAtOnce(t *testing.T) {
	remote(t, func(t *testing.T, ctx context.Context, x spec.Executor) {
		g := spec.New()
		local := g.Task(spec.K("local"), func(n int) int { return n }, 1)
		_, err := spec.Get[int](ctx, x, g, local)
		if e, ok := errors.AsType[*spec.InvalidError](err); !ok || e.Key != local || !errors.Is(err, mobula.ErrInvalid) {
			t.Errorf("a function that is not registered: %v", err)
		}
		for says, fn := range map[string]any{"is not written in Go": mobula.PythonFunc1[int, int]("math", "factorial"), "the zero value": mobula.Func1[int, int]{}} {
			g := spec.New()
			if _, err := spec.Get[int](ctx, x, g, g.Task(local, fn, 1)); err == nil || !strings.Contains(err.Error(), says) {
				t.Errorf("a handle without a function: %v, want %s", err, says)
			}
		}
		odd := g.Task(spec.K("odd"), show, make(chan int))
		if _, err := spec.Get[string](ctx, x, g, odd); !errors.Is(err, mobula.ErrNotEncodable) || !strings.HasPrefix(err.Error(), `graph: "odd": argument 0: `) {
			t.Errorf("a channel: %v", err)
		}
		fine := g.Task(spec.K("fine"), add, 1, 2)
		if _, err := spec.Get[int](t.Context(), x, g, fine); !errors.Is(err, mobula.ErrInvalid) {
			t.Errorf("a context of no cluster: %v", err)
		}
		if n, err := spec.Get[int](ctx, x, g, g.Data(spec.K("data"), 5)); n != 5 || err != nil {
			t.Errorf("a graph without tasks: %d, %v", n, err)
		}
	})
}
