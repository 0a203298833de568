package e2e

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"mobula"
)

// A driver process is this test binary started again; what it does is named in its
// environment. It says "ready" when it has done it, and then waits to be killed.
const driverEnv = "MOBULA_E2E_DRIVER"

// inside, and a spill directory, stand for an address where the driver is to have a node of its own.
const inside = "inside:"

var driverBodies = map[string]func(ctx context.Context) error{
	// hoard fills the store twice over and runs a task that does not end.
	"hoard": func(ctx context.Context) error {
		for i := range 32 {
			ref := fill.Go(ctx, mobula.V(1<<17), mobula.V(float64(i)))
			if _, _, err := mobula.Wait(ctx, []mobula.Ref[[]float64]{ref}, 1); err != nil {
				return err
			}
			hoarded = append(hoarded, ref)
		}
		a, err := counterType.Spawn(ctx, mobula.V(0))
		if err != nil {
			return err
		}
		if _, err := counterInc.Go(ctx, a, mobula.V(1)).Get(ctx); err != nil {
			return err
		}
		stuck = sleepy.Go(ctx, mobula.V(600_000), mobula.V(0))
		return nil
	},
	// late calls a function that it registers too late.
	"late": func(ctx context.Context) error {
		f := mobula.Register0("e2e/late", func(context.Context) (int, error) { return 1, nil })
		_, err := f.Go(ctx).Get(ctx)
		if !isErr(err, mobula.ErrUnknownFunction) || !strings.Contains(err.Error(), "e2e/late") {
			return fmt.Errorf("a function that the worker does not know: %v", err)
		}
		v, err := add.Go(ctx, mobula.V(1.0), mobula.V(2.0)).Get(ctx)
		if err != nil || v != 3 {
			return fmt.Errorf("afterwards: %v, %w", v, err)
		}
		return nil
	},
	// detached makes a detached actor and leaves.
	"detached": func(ctx context.Context) error {
		a, err := counterType.Spawn(ctx, mobula.V(40), mobula.Named("e2e", "left-behind"), mobula.Detached())
		if err != nil {
			return err
		}
		_, err = counterInc.Go(ctx, a, mobula.V(1)).Get(ctx)
		return err
	},
}

var (
	hoarded []mobula.Ref[[]float64]
	stuck   mobula.Ref[int]
)

// driverMain runs the driver, if this process is to be one.
func driverMain() bool {
	what, address, ok := strings.Cut(os.Getenv(driverEnv), " ")
	if !ok {
		return false
	}
	ctx := context.Background()
	var c *mobula.Cluster
	var err error
	if dir, ok := strings.CutPrefix(address, inside); ok {
		c, err = mobula.Start(ctx, mobula.WithStore(8*mib), mobula.WithSpill(dir), mobula.WithProcesses(), mobula.WithLogger(quiet()))
	} else {
		c, err = mobula.Connect(ctx, address, mobula.ConnectLogger(quiet()))
	}
	if err == nil {
		err = driverBodies[what](c.Context(ctx))
	}
	if err != nil {
		fail(err)
	}
	if _, err := io.WriteString(os.Stdout, "ready\n"); err != nil {
		fail(err)
	}
	_, _ = io.Copy(io.Discard, os.Stdin) // until the test is done with it
	if err := c.Close(ctx); err != nil {
		fail(err)
	}
	return true
}

// launchDriver starts a driver process, which is ready when it returns.
func launchDriver(t *testing.T, address, what string) *nodeProcess {
	t.Helper()
	return launchDriverOf(t, "/proc/self/exe", address, what)
}

// launchDriverOf is launchDriver of a copy of this program.
func launchDriverOf(t *testing.T, exe, address, what string) *nodeProcess {
	t.Helper()
	cmd := exec.Command(exe, "-test.run=^$")
	cmd.Env = append(os.Environ(), driverEnv+"="+what+" "+address)
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p := &nodeProcess{cmd: cmd, stdin: stdin}
	t.Cleanup(func() { p.stop(t) })
	late := time.AfterFunc(30*time.Second, func() { _ = cmd.Process.Kill() })
	defer late.Stop()
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err == nil && strings.TrimSpace(line) != "ready" {
		err = errors.New(strings.TrimSpace(line))
		p.wait()
	}
	if err != nil {
		t.Fatalf("driver process: %v", err)
	}
	return p
}
