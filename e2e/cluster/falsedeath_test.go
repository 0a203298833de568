package cluster

import (
	"context"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"mobula"
	"mobula/e2e/harness"
	"mobula/internal/netns"
	"mobula/internal/netns/nodes"
)

// A node that is stopped for less than it takes to be sure of a death is not taken for dead: what runs there goes on.
func TestAStoppedNodeIsNotTakenForDead(t *testing.T) {
	ctx, cancel := harness.Limit(t)
	defer cancel()
	c := start(t, network(t, 3))
	ctx, d := connect(t, ctx, c)
	for range harness.Size(1, 20) {
		for _, n := range c.Nodes()[1:] {
			id := idOf(t, ctx, n)
			dir, ref := running(t, ctx, id)
			must(t, n.Host.Signal(syscall.SIGSTOP))
			<-time.After(2 * time.Second) // how long it is stopped
			must(t, n.Host.Signal(syscall.SIGCONT))
			if at := letGo(t, ctx, dir, ref); at != id || len(attempts(t, dir)) != 1 {
				t.Fatalf("it ran as %v and ended on node %s, want it on node %s once", attempts(t, dir), at, id)
			}
		}
	}
	if n := retried(t, ctx, d); n != 0 {
		t.Errorf("%d attempts were made again", n)
	}
}

// Nor is one whose processors are busy.
func TestABusyNodeIsNotTakenForDead(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Duration(harness.Size(3, 40))*time.Minute) // the full size takes 20
	defer cancel()
	c := start(t, network(t, 3))
	ctx, d := connect(t, ctx, c)
	for range harness.Size(1, 20) {
		n := c.Nodes()[1]
		id := idOf(t, ctx, n)
		dir, ref := running(t, ctx, id)
		burn(t, time.Duration(harness.Size(5, 60))*time.Second)
		if at := letGo(t, ctx, dir, ref); at != id || len(attempts(t, dir)) != 1 {
			t.Fatalf("it ran as %v and ended on node %s, want it on node %s once", attempts(t, dir), at, id)
		}
	}
	if n := retried(t, ctx, d); n != 0 {
		t.Errorf("%d attempts were made again", n)
	}
}

// burn keeps all processors of the machine busy for a time, twice over.
func burn(t *testing.T, d time.Duration) {
	t.Helper()
	var busy []*exec.Cmd
	defer func() {
		for _, cmd := range busy {
			_ = cmd.Process.Kill()
			_ = cmd.Wait() // it was killed
		}
	}()
	for range 2 * runtime.NumCPU() {
		cmd := exec.Command("sh", "-c", "while :; do :; done")
		must(t, cmd.Start())
		busy = append(busy, cmd)
	}
	select {
	case <-time.After(d):
	case <-t.Context().Done():
		t.Fatal(t.Context().Err())
	}
}

// Two nodes that do not reach each other, and doubt each other's life, both live: the control plane hears both. What runs there goes on, and is told when they meet
// again; other work goes elsewhere meanwhile.
func TestTwoNodesThatDoNotReachEachOtherBothLive(t *testing.T) {
	ctx, cancel := harness.Limit(t)
	defer cancel()
	hosts := network(t, 3)
	c := start(t, hosts)
	first, second, third := c.Nodes()[0], c.Nodes()[1], c.Nodes()[2]
	ctx, d := connectAt(t, ctx, second, c)
	there, _ := connectAt(t, ctx, third, c)
	here2, here3 := idOf(t, ctx, second), idOf(t, ctx, third)
	dir, ref := running(t, ctx, here3)
	back, refBack := running(t, there, here2)

	must(t, netns.Part(ctx, hosts[1], hosts[2]))
	harness.Eventually(t, ctx, "both doubt the other", func() bool {
		return strings.Contains(second.Log(), "a node may be dead") && strings.Contains(third.Log(), "a node may be dead")
	})
	for parted := time.Now(); time.Since(parted) < longestSilence; {
		for _, driver := range []context.Context{ctx, there} {
			if _, err := here.Go(driver).Get(driver); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, n := range []*nodes.Node{first, second, third} {
		if log := n.Log(); strings.Contains(log, "a node's life is over") || strings.Contains(log, "the node ends") {
			t.Errorf("the node on %v has seen an end:\n%s", n.Host.Addr, log)
		}
	}
	must(t, netns.Join(ctx, hosts[1], hosts[2]))
	if at := letGo(t, ctx, dir, ref); at != here3 || len(attempts(t, dir)) != 1 {
		t.Errorf("it ran as %v and ended on node %s, want it on node %s once", attempts(t, dir), at, here3)
	}
	if at := letGo(t, there, back, refBack); at != here2 || len(attempts(t, back)) != 1 {
		t.Errorf("it ran as %v and ended on node %s, want it on node %s once", attempts(t, back), at, here2)
	}
	harness.Eventually(t, ctx, "each gives the other work again", func() bool {
		a, err := here.Go(ctx, mobula.OnNode(here3)).Get(ctx)
		b, bad := here.Go(there, mobula.OnNode(here2)).Get(there)
		return err == nil && bad == nil && a == here3 && b == here2
	})
	if n := retried(t, ctx, d); n != 0 {
		t.Errorf("%d attempts were made again", n)
	}
}

// longestSilence is longer than the control plane lets any life be silent, and is what nodes have to notice.
const longestSilence = 10 * time.Second
