package faults

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"mobula"
	"mobula/e2e/harness"
	"mobula/internal/node"
)

// Tasks that have no room on the driver's node run on another.
func TestTasksRunOnAnotherNode(t *testing.T) {
	nodes := harness.StartNodes(t, 1, 2)
	ctx, _ := harness.ConnectTo(t, nodes[0])
	spread(t, ctx, harness.Where, nodes...)
}

// spread runs tasks of a job, some on each of these nodes, and gives their references.
func spread(t *testing.T, ctx context.Context, task mobula.Func1[int, string], nodes ...*node.Node) (refs []mobula.Ref[string]) { //nolint:revive // t comes first
	t.Helper()
	for range 12 {
		refs = append(refs, task.Go(ctx, mobula.V(300)))
	}
	at, err := mobula.GetAll(ctx, refs)
	if err != nil {
		t.Fatal(err)
	}
	for i, n := range nodes {
		if !slices.Contains(at, n.Address()) {
			t.Fatalf("nothing ran on node %d: %v", i+1, at)
		}
	}
	return refs
}

const bigSize = 1 << 20

// bigThere makes a value that lies in the store of the node where it runs, after a while.
var bigThere = mobula.Register1("e2e/bigThere", func(ctx context.Context, mark byte) ([]byte, error) {
	select {
	case <-time.After(100 * time.Millisecond):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	return bytes.Repeat([]byte{mark}, bigSize), nil
})

// sumOf adds up the first and the last bytes of values.
var sumOf = mobula.RegisterVar0("e2e/sumOf", func(_ context.Context, values [][]byte) (int, error) {
	sum := 0
	for _, v := range values {
		if len(v) != bigSize {
			return 0, fmt.Errorf("a value of %d bytes", len(v))
		}
		sum += int(v[0]) + int(v[len(v)-1])
	}
	return sum, nil
})

// nested submits tasks where it runs, and adds up what they make.
var nested = mobula.Register1("e2e/nested", func(ctx context.Context, n int) (int, error) {
	mine, err := mobula.Put(ctx, bytes.Repeat([]byte{1}, bigSize))
	if err != nil {
		return 0, err
	}
	refs := []mobula.Ref[[]byte]{mine}
	for i := range n {
		refs = append(refs, bigThere.Go(ctx, mobula.V(byte(i+1))))
	}
	return sumOf.Go(ctx, refs).Get(ctx)
})

// Values in the store of one node are read on others, as arguments and by gets, by drivers and by workers.
func TestStoredValuesReachOtherNodes(t *testing.T) {
	nodes := harness.StartNodes(t, 1, 2, 1)
	ctx, _ := harness.ConnectTo(t, nodes[0])
	var refs []mobula.Ref[[]byte]
	want := 0
	for i := range 12 {
		refs = append(refs, bigThere.Go(ctx, mobula.V(byte(i))))
		want += 2 * i
	}
	mine, err := mobula.Put(ctx, bytes.Repeat([]byte{50}, bigSize))
	if err != nil {
		t.Fatal(err)
	}
	refs = append(refs, mine)
	want += 100
	var sums []mobula.Ref[int]
	for range 6 {
		sums = append(sums, sumOf.Go(ctx, refs))
	}
	for _, s := range sums {
		if got, err := s.Get(ctx); err != nil || got != want {
			t.Fatalf("the sum is %d, %v, want %d", got, err, want)
		}
	}
	values, err := mobula.GetAll(ctx, refs)
	if err != nil {
		t.Fatal(err)
	}
	for i, v := range values[:12] {
		if len(v) != bigSize || v[0] != byte(i) || v[bigSize-1] != byte(i) {
			t.Errorf("value %d is wrong", i)
		}
	}
}

// A task on another node submits tasks and puts objects, which its job's owner has.
func TestATaskElsewhereSubmitsTasks(t *testing.T) {
	nodes := harness.StartNodes(t, 1, 2)
	ctx, _ := harness.ConnectTo(t, nodes[0])
	var sums []mobula.Ref[int]
	for range 6 {
		sums = append(sums, nested.Go(ctx, mobula.V(3)))
	}
	for _, s := range sums {
		if got, err := s.Get(ctx); err != nil || got != 2*(1+1+2+3) {
			t.Fatalf("the sum is %d, %v", got, err)
		}
	}
}
