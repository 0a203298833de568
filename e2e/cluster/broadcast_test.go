package cluster

import (
	"context"
	"fmt"
	"syscall"
	"testing"
	"time"

	"mobula"
	"mobula/e2e/harness"
	"mobula/internal/netns"
)

// summed is the sum of an array, and the node where it was added up.
type summed struct {
	Sum  uint64
	Node string
}

var adds = mobula.Register1("e2e/cluster/adds", func(ctx context.Context, b []byte) (out summed, err error) {
	for i, x := range b {
		out.Sum += uint64(x) * uint64(1+i%1000)
	}
	at, err := mobula.GetRuntimeContext(ctx)
	out.Node = at.NodeID
	return out, err
})

// takesOver is how long a node waits for a holder that says nothing, and to fetch and add up what is left then.
const takesOver = 8 * time.Second

// A node that passes a broadcast on is stopped in the middle. Those that it serves go on with another holder, where they were: each byte enters them about once. When
// it goes on it gets the rest, and the right one.
func TestANodeThatPassesABroadcastOnIsStopped(t *testing.T) {
	ctx, cancel := harness.Limit(t)
	defer cancel()
	size := harness.Size(64, 192) << 20
	hosts := network(t, 4)
	c := start(t, hosts, "--store-size", fmt.Sprint(2*size))
	ctx, _ = connect(t, ctx, c)
	array := make([]byte, size)
	for i := range array {
		array[i] = byte(i * 7 / 3)
	}
	var want uint64
	for i, x := range array {
		want += uint64(x) * uint64(1+i%1000)
	}
	put, err := mobula.Put(ctx, array)
	must(t, err)

	traffic := func(h *netns.Host) netns.Traffic {
		now, err := h.Traffic()
		must(t, err)
		return now
	}
	receivers := c.Nodes()[1:]
	before := make([]netns.Traffic, len(receivers))
	sums := make([]mobula.Ref[summed], len(receivers))
	for i, n := range receivers {
		before[i] = traffic(n.Host)
	}
	for i, n := range receivers {
		sums[i] = adds.Go(ctx, put, mobula.PreferNode(idOf(t, ctx, n)))
	}
	stopped := -1
	harness.Eventually(t, ctx, "a node passes on what it has", func() bool {
		for i, n := range receivers {
			if traffic(n.Host).Since(before[i]).Out > int64(size/8) {
				stopped = i
			}
		}
		return stopped >= 0
	})
	must(t, receivers[stopped].Host.Signal(syscall.SIGSTOP))
	begun := time.Now()
	t.Logf("node %s is stopped with %v", receivers[stopped].Name, traffic(receivers[stopped].Host).Since(before[stopped]))
	right := func(i int) {
		t.Helper()
		if got, err := sums[i].Get(ctx); err != nil || got.Sum != want {
			t.Errorf("on node %s the sum is %d, %v; want %d", receivers[i].Name, got.Sum, err, want)
		}
	}
	for i := range receivers {
		if i != stopped {
			right(i)
		}
	}
	holds(t, "a broadcast over a stopped node", time.Since(begun), takesOver)
	must(t, receivers[stopped].Host.Signal(syscall.SIGCONT))
	right(stopped)
	for i, n := range receivers {
		in := traffic(n.Host).Since(before[i]).In
		t.Logf("node %s has received %d bytes for %d", n.Name, in, size)
		if i != stopped && in > int64(size)*5/4 {
			t.Errorf("node %s has received %d bytes for %d", n.Name, in, size)
		}
	}
}
