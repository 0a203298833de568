package guard

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"mobula/internal/pidfd"
	"mobula/internal/testkit"
)

// A process shows no environment in the moment of an exec. One that does nothing but exec is found all the same.
func TestASweepFindsAProcessInItsExec(t *testing.T) {
	script := filepath.Join(t.TempDir(), "again")
	if err := os.WriteFile(script, []byte("#!/bin/sh\nexec \"$0\"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	for i := range 100 {
		life := "exec." + strconv.Itoa(i)
		cmd := exec.Command(script)
		cmd.Env = []string{Variable + "=" + life + ".1"}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		sweep(below(life), patience)
		if gone := pidfd.Gone(cmd.Process.Pid); !gone {
			t.Errorf("process %d of sweep %d lives", cmd.Process.Pid, i)
			_ = cmd.Process.Kill()
		}
		_ = cmd.Wait() // it was killed
	}
}

// A sweep does not wait for a process that has no environment at all, nor for one that has ended and that nobody has waited for.
func TestASweepPassesWhatHasNoEnvironment(t *testing.T) {
	cmd := exec.Command("sleep", "1000")
	cmd.Env = []string{}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, "through its exec", func() bool { return !pidfd.Execs(cmd.Process.Pid) })
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, "a zombie", func() bool { return pidfd.Gone(cmd.Process.Pid) && !pidfd.Execs(cmd.Process.Pid) })
	_ = cmd.Wait() // it was killed
}
