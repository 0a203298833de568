package cluster

import (
	"context"
	"os/exec"
	"runtime"
	"syscall"
	"testing"
	"time"

	"mobula/e2e/harness"
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
