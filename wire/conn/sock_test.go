package conn

import (
	"testing"

	"golang.org/x/sys/unix"

	"mobula/internal/testkit"
	"mobula/wire"
)

// A sender is not woken because the other side took its message; it is for one of its own.
func TestRoomWakesNobody(t *testing.T) {
	a, b := socketPair(t, Config{})
	ready := func() bool {
		var n int
		var pollErr error
		if err := a.t.(*socket).raw.Control(func(set uintptr) {
			for pollErr = unix.EINTR; pollErr == unix.EINTR; { // by the runtime's signals
				n, pollErr = unix.Poll([]unix.PollFd{{Fd: int32(set), Events: unix.POLLIN}}, 0)
			}
		}); err != nil || pollErr != nil {
			t.Fatal(err, pollErr)
		}
		return n > 0
	}
	for range 3 {
		if err := a.Send(putValue(2000, 1)); err != nil {
			t.Fatal(err)
		}
		recvN(t, b, 1)
		if ready() {
			t.Fatal("woken by the room that the message left")
		}
	}
	if err := b.Send(&wire.Drain{}); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, "woken by a message", ready)
	recvN(t, a, 1)
}
