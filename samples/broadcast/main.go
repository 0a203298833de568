package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"time"
	"unsafe"

	"github.com/dustin/go-humanize"

	"mobula"
)

// Summed is the sum of an array, and the node where it was added up.
type Summed struct {
	Sum  float64
	Node string
}

// Sum adds up an array. The slice lies in shared memory: every task on a node reads the same pages.
var Sum = mobula.Register1("broadcast/sum", func(ctx context.Context, xs []float64) (Summed, error) {
	rc, err := mobula.GetRuntimeContext(ctx)
	return Summed{sum(xs), rc.NodeID}, err
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
	size := flag.String("size", "", "of the array (default: 1GiB, or half of the smallest store of the nodes)")
	tasks := flag.Int("tasks", 100, "that sum it")
	processes := flag.Bool("processes", true, "run tasks in worker processes")
	if mobula.WorkerMain() {
		return
	}
	flag.Parse()
	n, err := uint64(defaultSize), error(nil)
	if *size != "" {
		n, err = humanize.ParseBytes(*size)
	}
	if err != nil || n < 8 || *tasks < 1 {
		fmt.Fprintf(os.Stderr, "broadcast: -size %s -tasks %d: want a size, as 1GiB, and at least one task\n", *size, *tasks)
		os.Exit(2)
	}
	opts := []mobula.StartOption{mobula.WithStore(int64(n) + 64<<20)}
	if *processes {
		opts = append(opts, mobula.WithProcesses())
	}
	mobula.Main(func(ctx context.Context, c *mobula.Cluster) error {
		if *size == "" {
			if n, err = fitting(ctx, c, n); err != nil {
				return err
			}
		}
		_, err := run(ctx, c, int(n/8), *tasks)
		return err
	}, opts...)
}

const defaultSize = 1 << 30

// fitting is a size for which each node has room.
func fitting(ctx context.Context, c *mobula.Cluster, size uint64) (uint64, error) {
	nodes, err := workers(ctx, c)
	for _, n := range nodes {
		if n.StoreLimit > 0 { // else it does not answer now
			size = min(size, n.StoreLimit/2)
		}
	}
	return size, err
}

// run has tasks on all nodes of the cluster sum an array, and gives how many each node ran.
func run(ctx context.Context, c *mobula.Cluster, n, tasks int) (ran map[string]int, err error) {
	start := time.Now()
	buf, err := mobula.Create[float64](ctx, n) // in the segment: nothing is copied
	if err != nil {
		return nil, err
	}
	xs := buf.Slice()
	for i := range xs {
		xs[i] = float64(i % 1000)
	}
	want := sum(xs)
	array, err := buf.Put()
	if err != nil {
		return nil, err
	}
	made := time.Now()
	on, err := workNodes(ctx, c)
	if err != nil {
		return nil, err
	}
	refs := make([]mobula.Ref[Summed], tasks)
	for i := range refs {
		refs[i] = Sum.Go(ctx, array, on[i%len(on)]) // else they would run where the array is
	}
	sums, err := mobula.GetAll(ctx, refs)
	if err != nil {
		return nil, err
	}
	ran = make(map[string]int)
	for i, got := range sums {
		if got.Sum != want {
			return nil, fmt.Errorf("task %d: sum %v, want %v", i, got.Sum, want)
		}
		ran[got.Node]++
	}
	took := time.Since(made)
	bytes := uint64(n) * uint64(unsafe.Sizeof(float64(0)))
	fmt.Printf("array of %s written in %v; %d tasks on %d nodes summed it in %v, %s/s\n", humanize.IBytes(bytes), made.Sub(start).Round(time.Millisecond),
		tasks, len(ran), took.Round(time.Millisecond), humanize.IBytes(uint64(float64(bytes)*float64(tasks)/took.Seconds())))
	return ran, nil
}

// workNodes are the nodes that have a CPU for tasks. A task prefers one, and runs elsewhere if that is lost.
func workNodes(ctx context.Context, c *mobula.Cluster) (on []mobula.TaskOption, err error) {
	nodes, err := workers(ctx, c)
	for _, n := range nodes {
		on = append(on, mobula.PreferNode(n.ID))
	}
	if len(on) == 0 && err == nil {
		err = errors.New("no node has a CPU")
	}
	return on, err
}

// workers are the nodes that have a CPU for tasks.
func workers(ctx context.Context, c *mobula.Cluster) ([]mobula.NodeState, error) {
	nodes, err := c.ListNodes(ctx, mobula.Query{Limit: 10_000, Filters: []mobula.Filter{{Field: "state", Value: "ALIVE"}}})
	return slices.DeleteFunc(nodes.Rows, func(n mobula.NodeState) bool { return n.Resources["CPU"] < 1 }), err
}
