package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"runtime"
	"time"
	"unsafe"

	"github.com/dustin/go-humanize"

	"mobula"
)

// Sum adds up an array. The slice lies in shared memory: every task reads the same pages.
var Sum = mobula.Register1("broadcast/sum", func(_ context.Context, xs []float64) (float64, error) {
	return sum(xs), nil
})

// sum uses four accumulators, so that it waits for memory and not for the adder.
func sum(xs []float64) float64 {
	var a, b, c, d float64
	for len(xs) >= 4 {
		a += xs[0]
		b += xs[1]
		c += xs[2]
		d += xs[3]
		xs = xs[4:]
	}
	for _, x := range xs {
		a += x
	}
	return a + b + c + d
}

func main() {
	size := flag.String("size", "1GiB", "of the array")
	tasks := flag.Int("tasks", 100, "that sum it")
	processes := flag.Bool("processes", true, "run tasks in worker processes")
	if mobula.WorkerMain() {
		return
	}
	flag.Parse()
	n, err := humanize.ParseBytes(*size)
	if err != nil || n < 8 || *tasks < 1 {
		fmt.Fprintf(os.Stderr, "broadcast: -size %s -tasks %d: want a size, as 1GiB, and at least one task\n", *size, *tasks)
		os.Exit(2)
	}
	opts := []mobula.StartOption{mobula.WithStore(int64(n) + 64<<20)}
	if *processes {
		opts = append(opts, mobula.WithProcesses())
	}
	mobula.Main(func(ctx context.Context, _ *mobula.Cluster) error { return run(ctx, int(n/8), *tasks) }, opts...)
}

func run(ctx context.Context, n, tasks int) error {
	start := time.Now()
	buf, err := mobula.Create[float64](ctx, n) // in the segment: nothing is copied
	if err != nil {
		return err
	}
	xs := buf.Slice()
	for i := range xs {
		xs[i] = float64(i % 1000)
	}
	want := sum(xs)
	array, err := buf.Put()
	if err != nil {
		return err
	}
	made := time.Now()
	refs := make([]mobula.Ref[float64], tasks)
	for i := range refs {
		refs[i] = Sum.Go(ctx, array)
	}
	sums, err := mobula.GetAll(ctx, refs)
	if err != nil {
		return err
	}
	for i, got := range sums {
		if got != want {
			return fmt.Errorf("task %d: sum %v, want %v", i, got, want)
		}
	}
	took := time.Since(made)
	bytes := uint64(n) * uint64(unsafe.Sizeof(float64(0)))
	fmt.Printf("array of %s written in %v; %d tasks summed it in %v, %s/s on %d CPUs\n", humanize.IBytes(bytes), made.Sub(start).Round(time.Millisecond),
		tasks, took.Round(time.Millisecond), humanize.IBytes(uint64(float64(bytes)*float64(tasks)/took.Seconds())), runtime.NumCPU())
	return nil
}
