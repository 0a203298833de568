package pidfd

import (
	"context"
	"os"
	"os/exec"
	"testing"

	"golang.org/x/sys/unix"
)

// A process is waited for until it ends or the wait is given up, with a pidfd and without.
func TestUntilTheEndOrGivenUp(t *testing.T) {
	for name, open := range map[string]func(int, int) (int, error){
		"pidfd": unix.PidfdOpen,
		"none":  func(int, int) (int, error) { return -1, unix.EMFILE },
	} {
		t.Run(name, func(t *testing.T) {
			before := openPidfd
			openPidfd = open
			defer func() { openPidfd = before }()
			ctx, cancel := context.WithCancel(t.Context())
			given := make(chan bool)
			go func() { given <- Until(ctx, os.Getpid()) }()
			cancel()
			if <-given {
				t.Error("this process is said to have ended")
			}
			cmd := exec.Command("sleep", "1000")
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			go func() { given <- Until(t.Context(), cmd.Process.Pid) }()
			if err := cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			_ = cmd.Wait() // it was killed
			if !<-given {
				t.Error("the wait was given up")
			}
		})
	}
}
