package harness

import (
	"context"
	"io"
	"log/slog"
	"os"
	"testing"
	"time"

	"mobula/internal/client"
	"mobula/internal/node"
	"mobula/internal/testkit"
)

// Stress tells whether the full sizes are asked for: `make stress`.
var Stress = os.Getenv("MOBULA_STRESS") != ""

// Size is the quick size, or the full one under `make stress`.
func Size(quick, full int) int {
	if Stress {
		return full
	}
	return quick
}

// Limit bounds one test, which waits often: on a loaded machine it may take long, but not for ever.
func Limit(t *testing.T) (context.Context, context.CancelFunc) {
	d := 2 * testkit.Patience()
	if Stress {
		d *= 4
	}
	return context.WithTimeout(t.Context(), d)
}

// Quiet is the log of nodes whose faults are wanted.
func Quiet() *slog.Logger {
	if os.Getenv("MOBULA_TEST_LOG") != "" {
		return slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelDebug}))
	}
	return slog.New(slog.NewTextHandler(io.Discard, nil))
}

// TempDir is like t.TempDir, but short: a socket's path has 108 bytes at most.
func TempDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "mobula-e2e-") //nolint:usetesting // t.TempDir has the test's name in it
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

// StartNode runs a node with a driver in this process. The context is the driver's.
func StartNode(t *testing.T, ctx context.Context, cfg node.Config) (*node.Node, context.Context) {
	t.Helper()
	if cfg.Dir == "" {
		cfg.Dir = TempDir(t)
	}
	if cfg.Logger == nil {
		cfg.Logger = Quiet()
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

// BothModes runs a test on a node embedded, and on one with worker processes.
func BothModes(t *testing.T, cfg node.Config, f func(t *testing.T, ctx context.Context, n *node.Node)) {
	for _, mode := range []string{"embedded", "process"} {
		t.Run(mode, func(t *testing.T) {
			ctx, cancel := Limit(t)
			defer cancel()
			cfg := cfg
			cfg.Processes = mode == "process"
			n, ctx := StartNode(t, ctx, cfg)
			f(t, ctx, n)
		})
	}
}

// Eventually polls what there is no notice of, until it holds or ctx ends.
func Eventually(t *testing.T, ctx context.Context, what string, cond func() bool) {
	t.Helper()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for !cond() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("%s: not so until %v", what, context.Cause(ctx))
		}
	}
}
