package mobula_test

import (
	"context"
	"fmt"

	"mobula"
)

var (
	mean = mobula.Register1("example/mean", func(_ context.Context, xs []float64) (float64, error) {
		total := 0.0
		for _, x := range xs { // xs lies in shared memory: it is read, not written
			total += x
		}
		return total / float64(len(xs)), nil
	})
	ramp = mobula.Register1("example/ramp", func(ctx context.Context, n int) ([]float64, error) {
		b, err := mobula.CreateResult[float64](ctx, 0, n) // room in the store, for the only result
		if err != nil {
			return nil, err
		}
		for i := range b.Slice() {
			b.Slice()[i] = float64(i)
		}
		return b.Slice(), nil // sealed where it lies
	})
)

// A value that several calls share is put once.
func ExamplePut() {
	_, ctx, done := start()
	defer done()

	xs, err := mobula.Put(ctx, make([]float64, 100_000))
	if err != nil {
		fmt.Println(err)
		return
	}
	a, b := mean.Go(ctx, xs), mean.Go(ctx, xs)
	fmt.Println(mobula.GetAll(ctx, []mobula.Ref[float64]{a, b}))
	// Output: [0 0] <nil>
}

// Wait gives whichever result is there first.
func ExampleWait() {
	_, ctx, done := start()
	defer done()

	slow, fast := untilCancelled.Go(ctx), add.Go(ctx, mobula.V(1), mobula.V(1))
	ready, rest, err := mobula.Wait(ctx, []mobula.Ref[int]{slow, fast}, 1)
	fmt.Println(len(ready), ready[0] == fast, len(rest), err)
	// Output: 1 true 1 <nil>
}

// A view reads a large value in place, until it is closed.
func ExampleRef_View() {
	_, ctx, done := start()
	defer done()

	v, err := ramp.Go(ctx, mobula.V(1_000_000)).View(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer v.Close()
	xs, err := v.Value()
	fmt.Println(len(xs), xs[999_999], err)
	// Output: 1000000 999999 <nil>
}

// A large value is written directly into the store, without a copy.
func ExampleCreate() {
	_, ctx, done := start()
	defer done()

	b, err := mobula.Create[float64](ctx, 1000)
	if err != nil {
		fmt.Println(err)
		return
	}
	for i := range b.Slice() {
		b.Slice()[i] = float64(i)
	}
	xs, err := b.Put()
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(mean.Go(ctx, xs).Get(ctx))
	// Output: 499.5 <nil>
}

// References can lie inside values, and keep the objects that they name.
func ExampleRef() {
	_, ctx, done := start()
	defer done()

	o := order{Item: "tea", Price: add.Go(ctx, mobula.V(3), mobula.V(4))}
	fmt.Println(bill.Go(ctx, mobula.V(o)).Get(ctx))
	// Output: tea: 7 <nil>
}

type order struct {
	Item  string
	Price mobula.Ref[int]
}

var bill = mobula.Register1("example/bill", func(ctx context.Context, o order) (string, error) {
	price, err := o.Price.Get(ctx)
	return fmt.Sprint(o.Item, ": ", price), err
})
