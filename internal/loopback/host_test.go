package loopback

import (
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"testing"
	"time"

	"mobula/internal/testkit"
)

// hosts are two that other tests do not have.
func hosts(t *testing.T) (a, b *Host) {
	r := testkit.Rand(t)
	host := func(last byte) *Host {
		return New(netip.AddrFrom4([4]byte{127, byte(1 + r.IntN(254)), byte(r.IntN(256)), last}))
	}
	return host(1), host(2)
}

// listener listens at a host, and gives what it accepts.
func listener(t *testing.T, h *Host) (net.Listener, chan net.Conn) {
	t.Helper()
	l, err := net.Listen("tcp", net.JoinHostPort(h.Addr().String(), "0"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	out := make(chan net.Conn, 10)
	go func() {
		defer close(out)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			t.Cleanup(func() { _ = c.Close() })
			out <- c
		}
	}()
	return l, out
}

func dial(t *testing.T, from *Host, to net.Addr, within time.Duration) (net.Conn, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	d := from.Dialer()
	c, err := d.DialContext(ctx, "tcp", to.String())
	if err == nil {
		t.Cleanup(func() { _ = c.Close() })
	}
	return c, err
}

func refuse(t *testing.T, h *Host, from ...netip.Addr) {
	t.Helper()
	if err := h.Refuse(from); err != nil {
		t.Fatal(err)
	}
}

// arrives tells whether what one end writes comes to the other within a time.
func arrives(t *testing.T, from, to net.Conn, within time.Duration) bool {
	t.Helper()
	if _, err := from.Write([]byte{1}); err != nil {
		t.Fatal(err)
	}
	if err := to.SetReadDeadline(time.Now().Add(within)); err != nil {
		t.Fatal(err)
	}
	_, err := io.ReadFull(to, make([]byte, 1))
	return err == nil
}

// short is how long something is awaited that must not come.
const short = 50 * time.Millisecond

// Between hosts that are cut off nothing arrives, on connections of before and in packets, and none can connect, not even to a port where nobody listens. Others go
// on; when it is mended what was sent comes, once.
func TestHostsAreCutOff(t *testing.T) {
	a, b := hosts(t)
	l, accepted := listener(t, a)
	other, err := dial(t, New(netip.AddrFrom4([4]byte{127, 0, 0, 1})), l.Addr(), testkit.Patience())
	if err != nil {
		t.Fatal(err)
	}
	atA := testkit.Receive(t, "the other connection", accepted)
	c, err := dial(t, b, l.Addr(), testkit.Patience())
	if err != nil {
		t.Fatal(err)
	}
	from := testkit.Receive(t, "the connection", accepted)
	if got := from.RemoteAddr().(*net.TCPAddr).AddrPort().Addr(); got != b.Addr() {
		t.Fatalf("it comes from %v, want %v", got, b.Addr())
	}
	packets, err := net.ListenPacket("udp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = packets.Close() }()
	sends, err := net.DialUDP("udp", &net.UDPAddr{IP: b.Addr().AsSlice()}, packets.LocalAddr().(*net.UDPAddr))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = sends.Close() }()

	refuse(t, a, b.Addr())
	refuse(t, b, a.Addr())
	if arrives(t, c, from, short) || arrives(t, from, c, short) {
		t.Error("bytes arrive")
	}
	if _, err := dial(t, b, l.Addr(), short); !isTimeout(err) {
		t.Errorf("it connects, or is told: %v", err)
	}
	nobody := &net.TCPAddr{IP: a.Addr().AsSlice(), Port: 1}
	if _, err := dial(t, b, nobody, short); !isTimeout(err) {
		t.Errorf("where nobody listens: %v", err)
	}
	if !arrives(t, other, atA, testkit.Patience()) {
		t.Error("another host is cut off")
	}
	if _, err := sends.Write([]byte("lost")); err != nil {
		t.Fatal(err)
	}

	refuse(t, a)
	refuse(t, b)
	if _, err := sends.Write([]byte("heard")); err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, 10)
	if err := packets.SetReadDeadline(time.Now().Add(testkit.Patience())); err != nil {
		t.Fatal(err)
	}
	if n, _, err := packets.ReadFrom(buf); err != nil || string(buf[:n]) != "heard" {
		t.Errorf("the packet that came is %q, %v", buf[:n], err)
	}
	for _, way := range [][2]net.Conn{{c, from}, {from, c}} { // the byte of before, and one more
		if !arrives(t, way[0], way[1], testkit.Patience()) {
			t.Error("what was sent does not come")
		}
		if _, err := io.ReadFull(way[1], make([]byte, 1)); err != nil {
			t.Error(err)
		}
	}
	if _, err := dial(t, b, l.Addr(), testkit.Patience()); err != nil {
		t.Error(err)
	}
}

func isTimeout(err error) bool {
	var n net.Error
	return errors.As(err, &n) && n.Timeout()
}
