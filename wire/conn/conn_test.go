package conn

import (
	"os/exec"
	"testing"
	"testing/synctest"
	"time"

	"mobula/internal/errs"
)

// The process has ended and a child of it may hold the socket: nobody reads any more.
func TestAPatientConnectionFailsWhenTheProcessHasEnded(t *testing.T) {
	cmd := exec.Command("true")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	a, _ := socketPair(t, Config{WriteTimeout: 10 * time.Millisecond, SoftBacklog: 1 << 20, Patient: true})
	a.peer.PID = int32(cmd.Process.Pid)
	fillUp(t, a)
	wantErr(t, a.AwaitRoom(), errs.ErrDisconnected, "read nothing for 10ms") // not yet waited for: still in the table of processes
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	if a.peer.lives() {
		t.Error("a process that was waited for lives")
	}
}

// In a bubble a minute passes at once.
func TestAPairTakesTheBubblesTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := memoryPair(t, Config{SoftBacklog: 1 << 20})
		start := time.Now()
		fillUp(t, a)
		wantErr(t, a.AwaitRoom(), errs.ErrDisconnected, "read nothing for 1m0s")
		if d := time.Since(start); d != time.Minute {
			t.Errorf("it took %v", d)
		}
		b.Fail(errs.New(errs.CodeShutdown, "end of test"))
	})
}
