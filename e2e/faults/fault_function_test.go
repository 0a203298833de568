package faults

import (
	"context"
	"errors"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"mobula"
	"mobula/e2e/harness"
	"mobula/internal/client"
	"mobula/internal/node"
)

// oddEnv makes a worker process another build than its driver: "missing" lacks a function,
// "signature" has it with other types.
const oddEnv = "MOBULA_E2E_ODD"

var (
	twoFaced mobula.Func1[int, int]

	exits = mobula.Register1("e2e/exits", func(_ context.Context, code int) (int, error) {
		os.Exit(code)
		return 0, nil
	})

	suicide = mobula.Register0("e2e/suicide", func(context.Context) (int, error) {
		return 0, syscall.Kill(os.Getpid(), syscall.SIGKILL)
	})
	// deaf never returns and does not look at its context.
	deaf = mobula.Register0("e2e/deaf", func(context.Context) (int, error) {
		heard.Add(1)
		<-never
		return 0, nil
	})
	// leak takes memory, a MiB after the other, until it has so many.
	leak = mobula.Register1("e2e/leak", func(ctx context.Context, mib int) (int, error) {
		var all [][]byte
		for range mib {
			b := make([]byte, 1<<20)
			for i := 0; i < len(b); i += 4096 {
				b[i] = 1
			}
			all = append(all, b)
		}
		<-ctx.Done() // the monitor looks four times a second
		return len(all), context.Cause(ctx)
	})
	// opaque is what no codec can write.
	opaque   = mobula.Register0("e2e/opaque", func(context.Context) (struct{ F func() }, error) { return struct{ F func() }{func() {}}, nil })
	takeFunc = mobula.Register1("e2e/take-func", func(context.Context, struct{ F func() }) (int, error) { return 1, nil })

	never = make(chan struct{})
	heard atomic.Int32 // calls of deaf that were started in this process
)

func init() {
	switch os.Getenv(oddEnv) {
	case "missing":
	case "signature":
		mobula.Register1("e2e/two-faced", func(_ context.Context, s string) (string, error) { return s, nil })
	default:
		twoFaced = mobula.Register1("e2e/two-faced", func(_ context.Context, n int) (int, error) { return -n, nil })
	}
}

func TestFaultFunctionPanics(t *testing.T) {
	harness.BothModes(t, node.Config{CPUs: 2, StoreBytes: 16 << 20}, func(t *testing.T, ctx context.Context, _ *node.Node) {
		_, err := harness.Boom.Go(ctx).Get(ctx)
		harness.WantErr(t, "a panic", err, mobula.ErrPanic, "boom")
		var te *mobula.TaskError
		if !errors.As(err, &te) || !strings.Contains(te.Stack, "e2e/") {
			t.Errorf("the error has no stack: %+v", te)
		}
		harness.Works(t, ctx)
	})
}

// A function that ends its process, in any way, fails by itself, with its last words.
func TestFaultFunctionEndsItsProcess(t *testing.T) {
	ctx, cancel := harness.Limit(t)
	defer cancel()
	_, ctx = harness.StartNode(t, ctx, node.Config{CPUs: 2, StoreBytes: 16 << 20, Processes: true})
	_, err := exits.Go(ctx, mobula.V(7), mobula.Retries(1)).Get(ctx)
	harness.WantErr(t, "os.Exit", err, mobula.ErrWorkerCrashed, "status 7")
	_, err = suicide.Go(ctx, mobula.Retries(1)).Get(ctx)
	harness.WantErr(t, "SIGKILL", err, mobula.ErrWorkerCrashed, "killed")
	harness.Works(t, ctx)
}

// A function that never returns ends with its deadline, and its slot goes to others.
func TestFaultFunctionNeverReturns(t *testing.T) {
	t.Parallel() // it mostly waits
	ctx, cancel := harness.Limit(t)
	defer cancel()
	_, ctx = harness.StartNode(t, ctx, node.Config{CPUs: 1, StoreBytes: 16 << 20, Processes: true})
	isLate(t, ctx)
	harness.Works(t, ctx)
}

func isLate(t *testing.T, ctx context.Context) {
	t.Helper()
	_, err := deaf.Go(ctx, mobula.Timeout(50*time.Millisecond)).Get(ctx)
	harness.WantErr(t, "a function that never returns", err, mobula.ErrDeadline)
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v is not context.DeadlineExceeded", err)
	}
}

// In a goroutine of the program nothing can end it: the node closes without it, in bounded time, says
// so, and leaves it the memory that it may read.
func TestFaultGoroutineNeverReturns(t *testing.T) {
	t.Parallel() // it mostly waits
	never = make(chan struct{})
	heard.Store(0)
	defer close(never)
	ctx, cancel := harness.Limit(t)
	defer cancel()
	n, err := node.Start(ctx, node.Config{Dir: harness.TempDir(t), CPUs: 1, StoreBytes: 16 << 20, Logger: harness.Quiet(), CloseTimeout: 2 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	c, err := n.Attach(ctx, "")
	if err != nil {
		t.Fatal(err)
	}
	ctx = client.WithTask(ctx, c.Root())
	for heard.Load() == 0 { // on a loaded machine the deadline may come before the start
		isLate(t, ctx)
	}
	harness.Works(t, ctx)
	if err := c.Close(ctx); err != nil {
		t.Error(err)
	}
	harness.WantErr(t, "close", n.Close(ctx), mobula.ErrShutdown, "still run though their context has ended")
	if ctx.Err() != nil {
		t.Error("it did not end before the test's own time was over")
	}
	if _, err := os.Stat(n.Address()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the rest is not closed: %v", err)
	}
}

// The memory monitor ends a process above what it asked for, and says so; the node goes on.
func TestFaultFunctionLeaksMemory(t *testing.T) {
	harness.BothModes(t, node.Config{CPUs: 2, StoreBytes: 16 << 20}, func(t *testing.T, ctx context.Context, n *node.Node) {
		_, err := leak.Go(ctx, mobula.V(256), mobula.Isolated(), mobula.Resources{Memory: 64 << 20}, mobula.Retries(0)).Get(ctx)
		harness.WantErr(t, "a leak", err, mobula.ErrOutOfMemory, "memory monitor", "asked for 64 MiB", "e2e/leak")
		harness.Works(t, ctx)
		if s := harness.OwnerStats(t, ctx, n); s.OOMKills == 0 {
			t.Errorf("the kill is not counted: %+v", s)
		}
	})
}

func TestFaultValueCannotBeEncoded(t *testing.T) {
	harness.BothModes(t, node.Config{CPUs: 1, StoreBytes: 16 << 20}, func(t *testing.T, ctx context.Context, _ *node.Node) {
		_, err := opaque.Go(ctx).Get(ctx)
		harness.WantErr(t, "a result", err, mobula.ErrNotEncodable, "func()")
		_, err = takeFunc.Go(ctx, mobula.V(struct{ F func() }{})).Get(ctx)
		harness.WantErr(t, "an argument", err, mobula.ErrNotEncodable, "func()", "e2e/take-func")
		_, err = mobula.Put(ctx, make(chan int))
		harness.WantErr(t, "a put", err, mobula.ErrNotEncodable, "chan int")
		harness.Works(t, ctx)
	})
}

func TestFaultInfeasibleResources(t *testing.T) {
	harness.BothModes(t, node.Config{CPUs: 2, StoreBytes: 16 << 20, Memory: 1 << 30}, func(t *testing.T, ctx context.Context, _ *node.Node) {
		for want, r := range map[string]mobula.Resources{
			"CPU":    {CPU: 64},
			"memory": {Memory: 1 << 40},
			"seat":   {Custom: map[string]float64{"seat": 1}},
		} {
			_, err := harness.Add.Go(ctx, mobula.V(1.0), mobula.V(2.0), r).Get(ctx)
			harness.WantErr(t, "a task that asks for too much", err, mobula.ErrUnschedulable, want)
			a, err := harness.CounterType.Spawn(ctx, mobula.V(1), r)
			if err == nil {
				err = a.Ready(ctx)
			}
			harness.WantErr(t, "an actor that asks for too much", err, mobula.ErrUnschedulable, want)
		}
		harness.Works(t, ctx)
	})
}

func TestFaultDuplicateActorName(t *testing.T) {
	harness.BothModes(t, node.Config{CPUs: 2, StoreBytes: 16 << 20}, func(t *testing.T, ctx context.Context, _ *node.Node) {
		first, err := harness.CounterType.Spawn(ctx, mobula.V(40), mobula.Named("fault", "taken"))
		if err != nil {
			t.Fatal(err)
		}
		second, err := harness.CounterType.Spawn(ctx, mobula.V(0), mobula.Named("fault", "taken"))
		if err == nil {
			_, err = harness.CounterInc.Go(ctx, second, mobula.V(1)).Get(ctx)
		}
		harness.WantErr(t, "the second of a name", err, mobula.ErrNameTaken, "taken")
		if v, err := harness.CounterInc.Go(ctx, first, mobula.V(2)).Get(ctx); err != nil || v != 42 {
			t.Errorf("the first of the name: %v, %v", v, err)
		}
	})
}

// A handle that no Register made.
func TestFaultUnregisteredFunction(t *testing.T) {
	harness.BothModes(t, node.Config{CPUs: 2, StoreBytes: 16 << 20}, func(t *testing.T, ctx context.Context, _ *node.Node) {
		var none mobula.Func0[int]
		_, err := none.Go(ctx).Get(ctx)
		harness.WantErr(t, "a handle that is no function's", err, mobula.ErrUnknownFunction, "Register")
		var many mobula.FuncN0[int]
		_, err = many.Go(ctx, 1)[0].Get(ctx)
		harness.WantErr(t, "a handle that is no function's", err, mobula.ErrUnknownFunction, "Register")
		harness.Works(t, ctx)
	})
}

// A function that the driver registers when it has joined is one that its workers do not know.
func TestFaultUnknownFunction(t *testing.T) {
	p := harness.MustLaunch(t, harness.NodeConfig{Dir: harness.TempDir(t), CPUs: 1, Store: 16 << 20, StoreDir: harness.TempDir(t)})
	harness.LaunchDriver(t, p.Address, "late") // it checks its errors
}

// A worker whose registry differs is not let in; the tasks say so, at once, and the driver
// goes on.
func TestFaultRegistryMismatch(t *testing.T) {
	for odd, word := range map[string]string{"missing": "not in the worker", "signature": "another signature", "beside the node": "not in the worker"} {
		t.Run(odd, func(t *testing.T) {
			ctx, cancel := harness.Limit(t)
			defer cancel()
			if odd == "beside the node" {
				_, ctx = harness.StartNode(t, ctx, node.Config{CPUs: 1, StoreBytes: 16 << 20, Processes: true, Env: []string{oddEnv + "=missing"}})
			} else {
				p := harness.MustLaunch(t, harness.NodeConfig{Dir: harness.TempDir(t), CPUs: 1, Store: 16 << 20, StoreDir: harness.TempDir(t), Workers: []string{oddEnv + "=" + odd}})
				_, ctx = harness.Connect(t, ctx, p)
			}
			_, err := twoFaced.Go(ctx, mobula.V(1)).Get(ctx)
			harness.WantErr(t, "a function of another build", err, mobula.ErrRegistryMismatch, "e2e/two-faced", word)
			a, err := harness.CounterType.Spawn(ctx, mobula.V(1))
			if err == nil {
				err = a.Ready(ctx)
			}
			harness.WantErr(t, "an actor of another build", err, mobula.ErrRegistryMismatch, "e2e/two-faced", word)
		})
	}
}
