package wire

import (
	"testing"

	"golang.org/x/sys/unix"
)

// A sender is not woken because the other side took its message; it is for one of its own.
func TestRoomWakesNobody(t *testing.T) {
	a, b := connPair(t, Config{})
	ready := func() bool {
		var n int
		var pollErr error
		if err := a.sock.raw.Control(func(set uintptr) {
			n, pollErr = unix.Poll([]unix.PollFd{{Fd: int32(set), Events: unix.POLLIN}}, 0)
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
	if err := b.Send(&Drain{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "woken by a message", ready)
	recvN(t, a, 1)
}

// What was sent before Close arrives, though the socket is shut before it is closed.
func TestWhatWasSentBeforeCloseArrives(t *testing.T) {
	a, b := connPair(t, Config{})
	const n = 50
	for i := range n {
		if err := a.Send(putValue(1000, byte(i))); err != nil {
			t.Fatal(err)
		}
	}
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	for i, m := range recvN(t, b, n) {
		if m.(*PutValue).Value.Data[0] != byte(i) {
			t.Fatalf("message %d is another", i)
		}
	}
}
