package languages

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"mobula"
	"mobula/e2e/harness"
	"mobula/mobulatest"
)

type row struct {
	Name string
	N    int
	Tags []string
}

type tally struct{}

var (
	pyShout  = mobula.PythonFunc1[string, string](harness.PythonHelpers, "shout")
	pyMean   = mobula.PythonFunc1[[]float64, float64](harness.PythonHelpers, "mean") // that is @mobula.remote
	pyGrid   = mobula.PythonFunc2[int, int, []float64](harness.PythonHelpers, "grid")
	pyGrid3  = mobula.PythonFunc2[int, int, [][3]float64](harness.PythonHelpers, "grid")
	pyKind   = mobula.PythonFunc1[any, string](harness.PythonHelpers, "kind")
	pySame   = mobula.PythonFunc1[any, any](harness.PythonHelpers, "same")
	pyRow    = mobula.PythonFunc1[row, row](harness.PythonHelpers, "same")
	pyRefs   = mobula.PythonFunc1[[]mobula.Ref[float64], []mobula.Ref[float64]](harness.PythonHelpers, "same")
	pyFail   = mobula.PythonFunc1[string, int](harness.PythonHelpers, "fail")
	pyOdd    = mobula.PythonFunc0[any](harness.PythonHelpers, "odd")
	pyDivmod = mobula.PythonFunc2x2[int, int, int, int](harness.PythonHelpers, "divmod_")
	pyCount  = mobula.PythonStream1[int, int](harness.PythonHelpers, "count")
	pyList   = mobula.PythonFuncN1[int, int](harness.PythonHelpers, "list")
	pyAdd    = mobula.PythonFunc2[float64, float64, float64](harness.PythonHelpers, "add_by_go")
	pyKilled = mobula.PythonFunc1[string, string](harness.PythonHelpers, "killed")
	pyNumber = mobula.PythonFunc1[string, float64](harness.PythonHelpers, "shout") // it gives a text
	pyLen    = mobula.PythonFunc1[[]int, int]("builtins", "len")

	tallies    = mobula.PythonActor1[int, tally](harness.PythonHelpers, "Tally")
	tallyAdd   = mobula.PythonMethod1[tally, int, int](tallies, "add")
	tallyPID   = mobula.PythonMethod0[tally, int](tallies, "pid")
	tallyItems = mobula.PythonStreamMethod0[tally, int](tallies, "items")
	tallyNone  = mobula.PythonMethod0[tally, int](tallies, "nothing")

	// A task of Go that calls Python.
	throughGo = mobula.Register1("e2e/through", func(ctx context.Context, s string) (string, error) {
		out, err := pyShout.Go(ctx, mobula.V(s)).Get(ctx)
		if err != nil {
			return "", fmt.Errorf("through Go: %w", err)
		}
		return out, nil
	})
)

// withPython runs a test on a node embedded, on one with worker processes, and as the driver of a node process.
func withPython(t *testing.T, f func(t *testing.T, ctx context.Context)) {
	opts := harness.Python(t)
	for mode, more := range map[string][]mobula.StartOption{"embedded": nil, "process": {mobula.WithProcesses()}} {
		t.Run(mode, func(t *testing.T) {
			ctx, cancel := harness.Limit(t)
			defer cancel()
			c := mobulatest.Start(t, append(more, mobula.WithCPUs(2), mobula.WithLogger(harness.Quiet()), mobula.WithPython(opts...))...)
			f(t, c.Context(ctx))
		})
	}
	t.Run("connected", func(t *testing.T) {
		ctx, cancel := harness.Limit(t)
		defer cancel()
		_, ctx = connectPython(t, ctx, harness.MustLaunch(t, harness.NodeConfig{Dir: harness.TempDir(t), CPUs: 2, Store: 64 << 20, StoreDir: harness.TempDir(t)}), opts)
		f(t, ctx)
	})
}

func connectPython(t *testing.T, ctx context.Context, p *harness.NodeProcess, opts []mobula.PythonOption) (*mobula.Cluster, context.Context) {
	t.Helper()
	c, err := mobula.Connect(ctx, p.Address, mobula.ConnectLogger(harness.Quiet()), mobula.ConnectPython(opts...))
	if err != nil {
		t.Fatalf("connect: %v", err)
	}
	t.Cleanup(func() {
		if err := c.Close(context.WithoutCancel(ctx)); err != nil {
			t.Errorf("close of the driver: %v", err)
		}
	})
	return c, c.Context(ctx)
}

// want checks what a reference gives.
func want[T any](t *testing.T, ctx context.Context, ref mobula.Ref[T], want T) {
	t.Helper()
	if got, err := ref.Get(ctx); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, %v, want %v", got, err, want)
	}
}

func TestGoCallsPython(t *testing.T) {
	withPython(t, func(t *testing.T, ctx context.Context) {
		want(t, ctx, pyShout.Go(ctx, mobula.V("hello")), "HELLO")
		want(t, ctx, pyMean.Go(ctx, mobula.V([]float64{1, 2, 6})), 3)
		want(t, ctx, pyLen.Go(ctx, mobula.V([]int{1, 2})), 2)
		q, r := pyDivmod.Go(ctx, mobula.V(17), mobula.V(5))
		want(t, ctx, q, 3)
		want(t, ctx, r, 2)
		var items []int
		for ref, err := range pyCount.Go(ctx, mobula.V(3)) {
			if err != nil {
				t.Fatal(err)
			}
			n, err := ref.Get(ctx)
			if err != nil {
				t.Fatal(err)
			}
			items = append(items, n)
		}
		if !slices.Equal(items, []int{0, 1, 2}) {
			t.Errorf("the stream has %v", items)
		}
		// References of either language are arguments of the other.
		want(t, ctx, harness.Add.Go(ctx, pyMean.Go(ctx, harness.Fill.Go(ctx, mobula.V(20_000), mobula.V(2.0))), mobula.V(1.0)), 3)
		want(t, ctx, harness.Sum.Go(ctx, pyGrid.Go(ctx, mobula.V(100), mobula.V(1000))), 99_999*100_000/2)
		want(t, ctx, pyGrid3.Go(ctx, mobula.V(2), mobula.V(3)), [][3]float64{{0, 1, 2}, {3, 4, 5}})
		one, err := mobula.Put(ctx, 1.5)
		if err != nil {
			t.Fatal(err)
		}
		back, err := pyRefs.Go(ctx, mobula.V([]mobula.Ref[float64]{one})).Get(ctx) // inside a value it stays one
		if err != nil || len(back) != 1 {
			t.Fatalf("%v, %v", back, err)
		}
		want(t, ctx, back[0], 1.5)
		want(t, ctx, pyAdd.Go(ctx, mobula.V(1.0), mobula.V(2.0)), 3) // Python, which calls Go
		want(t, ctx, throughGo.Go(ctx, mobula.V("there and back")), "THERE AND BACK")
	})
}

func TestValuesMeanTheSameInPython(t *testing.T) {
	ctx, cancel := harness.Limit(t)
	defer cancel()
	ctx = mobulatest.Start(t, mobula.WithPython(harness.Python(t)...)).Context(ctx)
	for _, c := range []struct {
		v      any
		python string // type and repr
	}{
		{nil, "NoneType None"}, {true, "bool True"}, {-7, "int -7"}, {0.5, "float 0.5"}, {"ü", "str 'ü'"}, {[]byte("\x00a"), `bytes b'\x00a'`},
		{[]string{"a"}, "list ['a']"}, {map[string]any{"k": []any{1, nil}}, "dict {'k': [1, None]}"}, {row{"n", 1, nil}, "dict {'N': 1, 'Name': 'n', 'Tags': None}"},
		{[]int32{1, 2}, "ndarray array([1, 2], dtype=int32)"}, {[][2]float64{{1, 2}}, "ndarray array([[1., 2.]])"},
	} {
		want(t, ctx, pyKind.Go(ctx, mobula.V(c.v)), c.python)
	}
	for _, v := range []any{nil, true, int64(-7), 0.5, "text", []byte("raw"), []float64{1, 2}, []int64{}, []any{"a", int64(1)}, strings.Repeat("x", 200_000)} {
		want(t, ctx, pySame.Go(ctx, mobula.V(v)), v)
	}
	want(t, ctx, pyRow.Go(ctx, mobula.V(row{"n", 3, []string{"a", "b"}})), row{"n", 3, []string{"a", "b"}})
}

func TestExceptionsOfPython(t *testing.T) {
	ctx, cancel := harness.Limit(t)
	defer cancel()
	ctx = mobulatest.Start(t, mobula.WithCPUs(2), mobula.WithPython(harness.Python(t)...)).Context(ctx)
	_, err := pyFail.Go(ctx, mobula.V("unicode")).Get(ctx)
	var py *mobula.PythonError
	if !errors.As(err, &py) || py.Classes[0] != "UnicodeDecodeError" || !py.IsA("ValueError") || py.IsA("KeyError") ||
		!strings.Contains(py.Traceback, "helpers_of_go.py") || !strings.Contains(py.Message, "0xff") || !errors.Is(err, mobula.ErrPython) || !errors.Is(err, mobula.ErrTaskFailed) {
		t.Errorf("%v: %+v", err, py)
	}
	if _, err := pyFail.Go(ctx, mobula.V("lost")).Get(ctx); !errors.Is(err, mobula.ErrObjectLost) || !errors.As(err, &py) || !py.IsA("mobula.exceptions.ObjectLostError") {
		t.Errorf("an error of the exception tree: %v", err)
	}
	if _, err := throughGo.Go(ctx, mobula.V("quiet")).Get(ctx); !errors.As(err, &py) || !py.IsA("UnicodeError") || !strings.Contains(err.Error(), "through Go") {
		t.Errorf("by way of a task of Go: %v", err)
	}
	if _, err := pyShout.Go(ctx, pyFailed(ctx)).Get(ctx); !errors.As(err, &py) || !py.IsA("KeyError") {
		t.Errorf("of an argument: %v", err)
	}
	for name, c := range map[string]struct {
		err  error
		is   error
		says []string
	}{
		"no such function": {failed(ctx, mobula.PythonFunc0[int](harness.PythonHelpers, "nothing").Go(ctx)), mobula.ErrUnknownFunction, []string{"helpers_of_go.nothing", "no 'nothing'", "shout"}},
		"no such module":   {failed(ctx, mobula.PythonFunc0[int]("no.such", "f").Go(ctx)), mobula.ErrUnknownFunction, []string{"no module 'no'"}},
		"no function":      {failed(ctx, mobula.PythonFunc0[int](harness.PythonHelpers, "np.pi").Go(ctx)), mobula.ErrUnknownFunction, []string{"is a float"}},
		"result":           {failed(ctx, pyOdd.Go(ctx)), mobula.ErrNotEncodable, []string{"py:helpers_of_go.odd: result 0", "helpers_of_go.Odd"}},
		"result's type":    {failed(ctx, pyNumber.Go(ctx, mobula.V("a"))), mobula.ErrNotDecodable, []string{"value is string, want float64"}},
		"arguments":        {failed(ctx, mobula.PythonFunc0[int](harness.PythonHelpers, "same").Go(ctx)), mobula.ErrPython, []string{"missing 1 required positional argument"}},
		"too few results":  {failed(ctx, pyList.Go(ctx, 2, mobula.V(1))[0]), mobula.ErrUnknownFunction, []string{"list"}},
	} {
		if !errors.Is(c.err, c.is) {
			t.Errorf("%s: %v", name, c.err)
			continue
		}
		for _, say := range c.says {
			if !strings.Contains(c.err.Error(), say) {
				t.Errorf("%s: %v does not say %q", name, c.err, say)
			}
		}
	}
}

func pyFailed(ctx context.Context) mobula.Ref[string] {
	return mobula.PythonFunc1[string, string](harness.PythonHelpers, "fail").Go(ctx, mobula.V("x"))
}

func failed[T any](ctx context.Context, ref mobula.Ref[T]) error {
	_, err := ref.Get(ctx)
	return err
}

// Without WithPython a Python function's call says what is missing, and everything else works.
func TestAJobWithoutPython(t *testing.T) {
	ctx, cancel := harness.Limit(t)
	defer cancel()
	ctx = mobulatest.Start(t).Context(ctx)
	if err := failed(ctx, pyShout.Go(ctx, mobula.V("x"))); !errors.Is(err, mobula.ErrUnknownFunction) || !strings.Contains(err.Error(), "WithPython") {
		t.Error(err)
	}
	want(t, ctx, harness.Add.Go(ctx, mobula.V(1.0), mobula.V(2.0)), 3)
	if _, err := mobula.Start(ctx, mobula.WithPython(mobula.PythonInterpreter("/nowhere/python3"))); !errors.Is(err, mobula.ErrRuntimeSetup) || !strings.Contains(err.Error(), "/nowhere/python3") {
		t.Errorf("an interpreter that there is not: %v", err)
	}
}

// A worker of Python is killed in the middle of a call of Go's: it is made again, as often as it may.
func TestKillAPythonWorker(t *testing.T) {
	withPython(t, func(t *testing.T, ctx context.Context) {
		dir := harness.TempDir(t)
		kill := func(path string) {
			t.Helper()
			harness.Eventually(t, ctx, "the task begins", func() bool { _, err := os.Stat(path); return err == nil })
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			pid, err := strconv.Atoi(string(text))
			if err != nil {
				t.Fatal(err)
			}
			if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
		}
		first, second := filepath.Join(dir, "first"), filepath.Join(dir, "second")
		ref := pyKilled.Go(ctx, mobula.V(first))
		kill(first)
		want(t, ctx, ref, "again")
		ref = pyKilled.Go(ctx, mobula.V(second), mobula.Retries(0))
		kill(second)
		if err := failed(ctx, ref); !errors.Is(err, mobula.ErrWorkerCrashed) || !strings.Contains(err.Error(), "python") {
			t.Errorf("without retries: %v", err)
		}
		want(t, ctx, pyShout.Go(ctx, mobula.V("on")), "ON")
	})
}

func TestActorsOfPython(t *testing.T) {
	withPython(t, func(t *testing.T, ctx context.Context) {
		a, err := tallies.Spawn(ctx, mobula.V(2), mobula.MaxRestarts(1), mobula.MaxTaskRetries(-1))
		if err != nil {
			t.Fatal(err)
		}
		want(t, ctx, tallyAdd.Go(ctx, a, mobula.V(3)), 5)
		n := 0
		for _, err := range tallyItems.Go(ctx, a) {
			if err != nil {
				t.Fatal(err)
			}
			n++
		}
		if n != 5 {
			t.Errorf("%d items", n)
		}
		if err := failed(ctx, tallyNone.Go(ctx, a)); !errors.Is(err, mobula.ErrUnknownFunction) || !strings.Contains(err.Error(), "add, items, pid") {
			t.Errorf("a method that there is not: %v", err)
		}
		pid, err := tallyPID.Go(ctx, a).Get(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		want(t, ctx, tallyAdd.Go(ctx, a, mobula.V(1)), 3) // made again
		named, err := tallies.Spawn(ctx, mobula.V(0), mobula.Named("", "tally"))
		if err != nil {
			t.Fatal(err)
		}
		same, err := mobula.GetActor[tally](ctx, "", "tally")
		if err != nil || same.ID() != named.ID() {
			t.Fatalf("%v, %v", same, err)
		}
		want(t, ctx, tallyAdd.Go(ctx, same, mobula.V(1)), 1)
		var py *mobula.PythonError
		bad, err := tallies.Spawn(ctx, mobula.V(-1))
		if err != nil {
			t.Fatal(err)
		}
		if err := bad.Ready(ctx); !errors.As(err, &py) || !py.IsA("ValueError") {
			t.Errorf("a constructor that raises: %v", err)
		}
	})
}

// The node of a Go driver is killed while a task of Python runs, and comes back: it knows what Python workers run.
func TestNodeWithPythonIsKilled(t *testing.T) {
	opts := harness.Python(t)
	ctx, cancel := harness.Limit(t)
	defer cancel()
	cfg := harness.NodeConfig{Dir: harness.TempDir(t), CPUs: 2, Store: 64 << 20, StoreDir: harness.TempDir(t)}
	p := harness.MustLaunch(t, cfg)
	_, ctx = connectPython(t, ctx, p, opts)
	path := filepath.Join(harness.TempDir(t), "began")
	ref := pyKilled.Go(ctx, mobula.V(path))
	harness.Eventually(t, ctx, "the task begins", func() bool { _, err := os.Stat(path); return err == nil })
	p.Kill(t)
	began := time.Now()
	harness.MustLaunch(t, cfg)
	want(t, ctx, ref, "again")
	want(t, ctx, pyShout.Go(ctx, mobula.V("on")), "ON")
	t.Logf("back after %v", time.Since(began))
}
