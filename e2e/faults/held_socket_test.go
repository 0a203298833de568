package faults

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"mobula/e2e/harness"
)

// heldEnv is where the driver of "held" writes which process has its sockets.
const heldEnv = "MOBULA_E2E_HELD"

func init() {
	// held is hoard with a child that has copies of all its sockets, as a fork has which closes nothing.
	harness.DriverBodies["held"] = func(ctx context.Context) error {
		if err := harness.DriverBodies["hoard"](ctx); err != nil {
			return err
		}
		child := exec.Command("sleep", "1000")
		child.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		all, err := filepath.Glob("/proc/self/fd/*")
		if err != nil {
			return err
		}
		for _, name := range all {
			if what, err := os.Readlink(name); err != nil || !strings.HasPrefix(what, "socket:") {
				continue
			}
			fd, err := strconv.Atoi(filepath.Base(name))
			if err != nil {
				return err
			}
			copied, err := syscall.Dup(fd)
			if err != nil {
				return err
			}
			child.ExtraFiles = append(child.ExtraFiles, os.NewFile(uintptr(copied), name))
		}
		if err := child.Start(); err != nil {
			return err
		}
		for _, f := range child.ExtraFiles {
			if err := f.Close(); err != nil {
				return err
			}
		}
		return os.WriteFile(os.Getenv(heldEnv), []byte(strconv.Itoa(child.Process.Pid)), 0o600)
	}
}

// A driver's job ends with its process, whoever still holds its connection.
func TestDriverIsKilledWhileAnotherHoldsItsSocket(t *testing.T) {
	ctx, cancel := harness.Limit(t)
	defer cancel()
	note := filepath.Join(harness.TempDir(t), "held")
	t.Setenv(heldEnv, note)
	cfg := harness.NodeConfig{Dir: harness.TempDir(t), CPUs: 2, Store: 16 << 20, StoreDir: harness.TempDir(t)}
	p := harness.MustLaunch(t, cfg)
	d := harness.LaunchDriver(t, p.Address, "held")
	text, err := os.ReadFile(note)
	if err != nil {
		t.Fatal(err)
	}
	holder, err := strconv.Atoi(string(text))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Kill(holder, syscall.SIGKILL) }) // it is a child of init by then
	d.Kill(t)
	harness.Eventually(t, ctx, "the driver's workers are gone", func() bool { return len(harness.WorkersOf(p.Address)) == 0 })
	c, ctx := harness.Connect(t, ctx, p)
	storeEmpties(t, ctx, c)
	harness.Eventually(t, ctx, "its files are gone", func() bool { return len(harness.FilesOf(cfg.Dir, "owner", "1")) == 0 })
	if err := syscall.Kill(holder, 0); err != nil {
		t.Errorf("the other process should still be there: %v", err)
	}
}
