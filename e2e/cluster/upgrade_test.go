package cluster

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"mobula"
	"mobula/e2e/harness"
)

// A cluster of the last release becomes one of this release node by node, while a program of the last release sorts: no sort fails, and nodes of both understand each
// other. The control plane's server, which is the program's own node, is the last one. `make upgrade` builds the last release.
func TestUpgradeNodeByNode(t *testing.T) {
	previous := os.Getenv("MOBULA_PREVIOUS")
	if previous == "" {
		t.Skip("make upgrade sets MOBULA_PREVIOUS, the directory of the executables of the last release")
	}
	ctx, cancel := harness.Limit(t)
	defer cancel()
	this := build(t, "cmd/mobula")
	t.Setenv("MOBULA_BINARY", filepath.Join(previous, "mobula"))
	c := start(t, network(t, 3), "--store-size", "256MiB")
	n := c.Nodes()

	// The program sorts again and again, beside the node that is replaced last, when it has ended: the others are replaced under it.
	sorts := make(chan error)
	enough, stop := context.WithCancel(ctx)
	defer stop()
	go func() {
		defer close(sorts)
		for enough.Err() == nil {
			sort := exec.CommandContext(ctx, filepath.Join(previous, "sort"), "-json", "-sample", "0", "-workers", "6", "-size", "1GiB", "-store", "256MiB", "-partitions", "24")
			sort.Env = append(os.Environ(), "MOBULA_ADDRESS="+n[0].Address)
			out, err := sort.CombinedOutput()
			if err != nil {
				err = fmt.Errorf("the sort: %w: %s", err, out)
			}
			select {
			case sorts <- err:
			case <-enough.Done():
			}
		}
	}()
	sorted := func() {
		t.Helper()
		select {
		case err := <-sorts:
			must(t, err)
		case <-ctx.Done():
			t.Fatal("no sort ends")
		}
	}
	c.Use(this)
	for i := 2; i > 0; i-- {
		harness.Eventually(t, ctx, "a sort is under way", func() bool {
			var s struct {
				Jobs []struct{ Submitted, Finished uint64 }
			}
			must(t, n[0].Ask(ctx, &s, "status"))
			return slices.ContainsFunc(s.Jobs, func(j struct{ Submitted, Finished uint64 }) bool { return j.Submitted > 10 && j.Finished > 5 })
		})
		must(t, n[i].Stop())
		back, err := c.Return(ctx, n[i])
		must(t, err)
		n[i] = back
		sorted()
		sorted() // on nodes of both releases from the start
	}
	stop()
	for err := range sorts {
		must(t, err)
	}
	must(t, n[0].Stop())
	back, err := c.Return(ctx, n[0])
	must(t, err)
	n[0] = back
	d, _ := connect(t, ctx, c)
	if got, err := here.Go(d, mobula.OnNode(idOf(t, ctx, n[2]))).Get(d); err != nil || got == "" {
		t.Errorf("a program of this release: %q, %v", got, err)
	}
	for _, x := range n {
		if log := x.Log(); strings.Contains(log, "a message of another node was refused") {
			t.Errorf("the node on %v does not understand another one:\n%s", x.Host.Addr, log)
		}
	}
}
