package mobula_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"mobula"
)

// Functions are registered at package level, under a name that stays the same: Go cannot ship a closure.
var (
	add    = mobula.Register2("example/add", func(_ context.Context, a, b int) (int, error) { return a + b, nil })
	divmod = mobula.Register2x2("example/divmod", func(_ context.Context, a, b int) (int, int, error) { return a / b, a % b, nil })
	total  = mobula.RegisterVar0("example/total", func(_ context.Context, xs []int) (int, error) {
		sum := 0
		for _, x := range xs {
			sum += x
		}
		return sum, nil
	})
	countdown = mobula.RegisterN1("example/countdown", func(ctx context.Context, from int) ([]int, error) {
		rc, err := mobula.GetRuntimeContext(ctx)
		out := make([]int, rc.Returns)
		for i := range out {
			out[i] = from - i
		}
		return out, err
	})
	untilCancelled = mobula.Register0("example/until-cancelled", func(ctx context.Context) (int, error) {
		<-ctx.Done()
		return 0, ctx.Err()
	})
	flaky = mobula.Register0("example/flaky", func(ctx context.Context) (int, error) {
		rc, err := mobula.GetRuntimeContext(ctx)
		if err == nil && rc.Attempt < 3 {
			err = errors.New("not yet")
		}
		return rc.Attempt, err
	})
)

// start runs a node in this process. A program calls Start itself, or is the body of Main.
func start() (c *mobula.Cluster, ctx context.Context, done func()) {
	ctx = context.Background()
	c, err := mobula.Start(ctx, mobula.WithStore(64<<20), mobula.WithCPUs(2))
	if err != nil {
		panic(err)
	}
	return c, c.Context(ctx), func() {
		if err := c.Close(ctx); err != nil {
			panic(err)
		}
	}
}

func ExampleStart() {
	ctx := context.Background()
	c, err := mobula.Start(ctx, mobula.WithStore(64<<20)) // a whole node, in this process
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close(ctx)
	ctx = c.Context(ctx) // calls with this context go to c

	fmt.Println(add.Go(ctx, mobula.V(1), mobula.V(2)).Get(ctx))
	// Output: 3 <nil>
}

// A call does not wait. Its result can be an argument of another call.
func ExampleRegister2() {
	// var add = mobula.Register2("example/add", func(_ context.Context, a, b int) (int, error) { return a + b, nil })
	_, ctx, done := start()
	defer done()

	x := add.Go(ctx, mobula.V(1), mobula.V(2)) // a Ref[int]
	y := add.Go(ctx, x, mobula.V(3))
	fmt.Println(y.Get(ctx))
	// Output: 6 <nil>
}

// Each of several results is an object of its own.
func ExampleRegister2x2() {
	_, ctx, done := start()
	defer done()

	q, r := divmod.Go(ctx, mobula.V(17), mobula.V(5))
	fmt.Println(mobula.GetAll(ctx, []mobula.Ref[int]{q, r}))
	// Output: [3 2] <nil>
}

// The caller says how many results it wants.
func ExampleRegisterN1() {
	_, ctx, done := start()
	defer done()

	refs := countdown.Go(ctx, 3, mobula.V(10))
	fmt.Println(mobula.GetAll(ctx, refs))
	// Output: [10 9 8] <nil>
}

// A function of any number of references.
func ExampleRegisterVar0() {
	_, ctx, done := start()
	defer done()

	var parts []mobula.Ref[int]
	for i := range 10 {
		parts = append(parts, add.Go(ctx, mobula.V(i), mobula.V(1)))
	}
	fmt.Println(total.Go(ctx, parts).Get(ctx))
	// Output: 55 <nil>
}

// Options are given with a call, or at registration as the defaults of all calls.
func ExampleTaskOption() {
	_, ctx, done := start()
	defer done()

	n, err := flaky.Go(ctx, mobula.RetryExceptions(), mobula.Retries(5), mobula.Label("third time lucky")).Get(ctx)
	fmt.Println(n, err)
	half := add.Go(ctx, mobula.V(1), mobula.V(1), mobula.Resources{CPU: .5}) // two of these share a CPU
	fmt.Println(half.Get(ctx))
	// Output:
	// 3 <nil>
	// 2 <nil>
}

// A timeout ends the task, and so does the deadline of the context that the call is made with.
func ExampleTimeout() {
	_, ctx, done := start()
	defer done()

	_, err := untilCancelled.Go(ctx, mobula.Timeout(10*time.Millisecond)).Get(ctx)
	fmt.Println(errors.Is(err, mobula.ErrDeadline), errors.Is(err, context.DeadlineExceeded))
	// Output: true true
}

func ExampleRef_Cancel() {
	_, ctx, done := start()
	defer done()

	r := untilCancelled.Go(ctx)
	if err := r.Cancel(ctx); err != nil {
		fmt.Println(err)
	}
	_, err := r.Get(ctx)
	fmt.Println(errors.Is(err, mobula.ErrCancelled))
	// Output: true
}

// Cancelling a context cancels what was called with it.
func ExampleCluster_Context() {
	c, _, done := start()
	defer done()

	ctx, cancel := context.WithCancel(c.Context(context.Background()))
	r := untilCancelled.Go(ctx)
	cancel()
	_, err := r.Get(c.Context(context.Background()))
	fmt.Println(errors.Is(err, context.Canceled))
	// Output: true
}

// A function can ask where it runs.
func ExampleGetRuntimeContext() {
	_, ctx, done := start()
	defer done()

	rc, err := where.Go(ctx).Get(ctx)
	fmt.Println(rc.Function, rc.Attempt, rc.Namespace, err)
	// Output: example/where 1 default <nil>
}

var where = mobula.Register0("example/where", mobula.GetRuntimeContext)
