package e2e

import (
	"context"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"mobula/internal/client"
	"mobula/internal/node"
)

// stress tells whether the full sizes are asked for: `make stress`.
var stress = os.Getenv("MOBULA_STRESS") != ""

// size is the quick size, or the full one under `make stress`.
func size(quick, full int) int {
	if stress {
		return full
	}
	return quick
}

// limit bounds one test: on a loaded machine it may take long, but not for ever.
func limit(t *testing.T) (context.Context, context.CancelFunc) {
	d := time.Minute
	if stress {
		d = 10 * time.Minute
	}
	return context.WithTimeout(t.Context(), d)
}

// quiet is the log of nodes whose faults are wanted.
func quiet() *slog.Logger {
	if os.Getenv("MOBULA_TEST_LOG") != "" {
		return slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelDebug}))
	}
	return slog.New(slog.NewTextHandler(io.Discard, nil))
}

// tempDir is like t.TempDir, but short: a socket's path has 108 bytes at most.
func tempDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "mobula-e2e-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// startNode runs a node with a driver in this process. The context is the driver's.
func startNode(t *testing.T, ctx context.Context, cfg node.Config) (*node.Node, context.Context) {
	t.Helper()
	if cfg.Dir == "" {
		cfg.Dir = tempDir(t)
	}
	if cfg.Logger == nil {
		cfg.Logger = quiet()
	}
	n, err := node.Start(ctx, cfg)
	if err != nil {
		t.Fatalf("start: %v", err)
	}
	t.Cleanup(func() {
		if err := n.Close(context.WithoutCancel(ctx)); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	c, err := n.Attach(ctx, "")
	if err != nil {
		t.Fatalf("attach: %v", err)
	}
	t.Cleanup(func() {
		if err := c.Close(context.WithoutCancel(ctx)); err != nil {
			t.Errorf("close of the driver: %v", err)
		}
	})
	return n, client.WithTask(ctx, c.Root())
}

// bothModes runs a test on a node embedded, and on one with worker processes.
func bothModes(t *testing.T, cfg node.Config, f func(t *testing.T, ctx context.Context, n *node.Node)) {
	for _, mode := range []string{"embedded", "process"} {
		t.Run(mode, func(t *testing.T) {
			ctx, cancel := limit(t)
			defer cancel()
			cfg := cfg
			cfg.Processes = mode == "process"
			n, ctx := startNode(t, ctx, cfg)
			f(t, ctx, n)
		})
	}
}

// eventually polls what there is no notice of, until it holds or ctx ends.
func eventually(t *testing.T, ctx context.Context, what string, cond func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !cond() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("%s: not so until %v", what, context.Cause(ctx))
		}
	}
}

// workersOf lists the worker processes of the node that listens at the address.
func workersOf(address string) []int {
	procs, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil {
		return nil
	}
	want := "MOBULA_WORKER_SOCKET=" + address + "\x00"
	var pids []int
	for _, p := range procs {
		env, err := os.ReadFile(p)
		if err != nil || !strings.Contains(string(env), want) {
			continue // gone, or another's
		}
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(p))); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}
