package api

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"mobula"
	"mobula/internal/testkit"
	"mobula/mobulatest"
)

// deaf says that it began, and takes no notice of its context: it runs until there is a file "free".
func deaf(_ context.Context, dir string) (int, error) {
	if err := note(filepath.Join(dir, "began"), fmt.Sprint(os.Getpid())); err != nil {
		return 0, err
	}
	defer func() { _ = note(filepath.Join(dir, "ended"), "x") }() // for the test alone
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for {
		<-tick.C
		if n, err := size(filepath.Join(dir, "free")); n > 0 || err != nil {
			return 1, err
		}
	}
}

var e2eDeaf = mobula.Register1("e2e/deaf", deaf)

// A goroutine cannot be killed: its reference fails at once, its slot is given up and its
// process ends, when what else runs there has had its time.
func TestC13ForceEndsWhatTakesNoNotice(t *testing.T) {
	ctx := mobulatest.Context(t, mobula.WithCPUs(2), mobula.WithProcesses())
	dir, beside := t.TempDir(), t.TempDir()
	good := e2eHold.Go(ctx, mobula.V(beside), mobula.V("good"))
	bad := e2eDeaf.Go(ctx, mobula.V(dir))
	testkit.Eventually(t, "both run", func() bool {
		return exists(filepath.Join(dir, "began"))() && exists(filepath.Join(beside, "good.began"))()
	})
	if err := bad.Cancel(ctx, mobula.Force()); err != nil {
		t.Fatal(err)
	}
	if _, err := bad.Get(ctx); !errors.Is(err, mobula.ErrCancelled) {
		t.Errorf("got %v", err)
	}
	if exists(filepath.Join(dir, "ended"))() {
		t.Error("the task noticed: the test shows nothing")
	}
	get(ctx, t, e2eAdd.Go(ctx, mobula.V(1.0), mobula.V(2.0)), 3) // there is a slot for others
	if err := note(filepath.Join(beside, "go"), "x"); err != nil {
		t.Fatal(err)
	}
	if _, err := good.Get(ctx); err != nil {
		t.Errorf("the one beside it: %v", err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "began"))
	if err != nil {
		t.Fatal(err)
	}
	var pid int
	if _, err := fmt.Sscan(string(text), &pid); err != nil || pid == os.Getpid() {
		t.Fatal(pid, err)
	}
	testkit.Eventually(t, "its process is gone", func() bool { return errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) })
}

func TestC13ForceGivesUpAGoroutine(t *testing.T) {
	dir := t.TempDir()
	ctx := mobulatest.Context(t, mobula.WithCPUs(1))
	t.Cleanup(func() { // before the runtime is closed, which looks for goroutines
		if err := note(filepath.Join(dir, "free"), "x"); err != nil {
			t.Error(err)
		}
		testkit.Eventually(t, "the goroutine has ended", exists(filepath.Join(dir, "ended")))
	})
	bad := e2eDeaf.Go(ctx, mobula.V(dir))
	testkit.Eventually(t, "it runs", exists(filepath.Join(dir, "began")))
	if err := bad.Cancel(ctx, mobula.Force()); err != nil {
		t.Fatal(err)
	}
	if _, err := bad.Get(ctx); !errors.Is(err, mobula.ErrCancelled) {
		t.Errorf("got %v", err)
	}
	get(ctx, t, e2eAdd.Go(ctx, mobula.V(1.0), mobula.V(2.0)), 3) // on the one CPU there is
}
