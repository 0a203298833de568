package harness

import (
	"bufio"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"mobula"
	"mobula/internal/testkit"
)

// A driver process is this test binary started again; what it does is named in its
// environment. It says "ready" when it has done it, and then waits to be killed.
const driverEnv = "MOBULA_E2E_DRIVER"

// Inside stands, before a spill directory, for an address: the driver is to have a node of its own.
const Inside = "inside:"

// DriverBodies are what driver processes do, by name: tests put theirs here when their package begins.
var DriverBodies = map[string]func(ctx context.Context) error{}

// driverMain runs the driver, if this process is to be one.
func driverMain() bool {
	what, address, ok := strings.Cut(os.Getenv(driverEnv), " ")
	if !ok {
		return false
	}
	ctx := context.Background()
	var c *mobula.Cluster
	var err error
	if dir, ok := strings.CutPrefix(address, Inside); ok {
		c, err = mobula.Start(ctx, mobula.WithStore(8*MiB), mobula.WithSpill(dir), mobula.WithProcesses(), mobula.WithLogger(Quiet()))
	} else {
		c, err = mobula.Connect(ctx, address, mobula.ConnectLogger(Quiet()))
	}
	if err == nil {
		err = DriverBodies[what](c.Context(ctx))
	}
	if err != nil {
		Fail(err)
	}
	if _, err := io.WriteString(os.Stdout, "ready\n"); err != nil {
		Fail(err)
	}
	_, _ = io.Copy(io.Discard, os.Stdin) // until the test is done with it
	if err := c.Close(ctx); err != nil {
		Fail(err)
	}
	return true
}

// LaunchDriver starts a driver process, which is ready when it returns.
func LaunchDriver(t *testing.T, address, what string) *NodeProcess {
	t.Helper()
	return LaunchDriverOf(t, "/proc/self/exe", address, what)
}

// LaunchDriverOf is LaunchDriver of a copy of this program.
func LaunchDriverOf(t *testing.T, exe, address, what string) *NodeProcess {
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
	p := &NodeProcess{Cmd: cmd, Stdin: stdin}
	t.Cleanup(func() { p.Stop(t) })
	late := time.AfterFunc(testkit.Patience(), func() { _ = cmd.Process.Kill() })
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
