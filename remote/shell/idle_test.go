package shell

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"mobula/remote"
)

// Nodes that have nothing to say to each other write nothing.
func TestAnIdleLinkIsSilent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var f faults
		nw := memoryNetwork{NewMemory()}
		a, b := start(t, nw, 1, 1, withFaults(&f)), start(t, nw, 2, 1)
		talk(a, b, 0, 10)
		check(t, a.awaitMessages(10), b.life, 0, 10)
		check(t, b.awaitMessages(10), a.life, 0, 10)
		time.Sleep(time.Minute)
		written := f.written()
		time.Sleep(time.Minute)
		if more := f.written() - written; written == 0 || more != 0 {
			t.Errorf("after %d writes there are %d more in a minute", written, more)
		}
		a.stop()
		b.stop()
	})
}

// While a message comes, however slowly, the node says that it lives.
func TestALargeMessageOverASlowLink(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nw := memoryNetwork{NewMemory()}
		a, b := start(t, nw, 1, 1, func(c *Config) { c.Transport = slow{c.Transport} }), start(t, nw, 2, 1)
		large := make([]byte, 1<<20)
		if err := a.Send(t.Context(), remote.Life{Home: 2}, large); err != nil {
			t.Fatal(err)
		}
		if got := b.awaitMessages(1); len(got[0].payload) != len(large) {
			t.Errorf("a message of %d bytes", len(got[0].payload))
		}
		a.stop()
		b.stop()
		if slices.ContainsFunc(a.notices, func(x remote.Notice) bool { _, down := x.(remote.Down); return down }) {
			t.Errorf("it says %+v", a.notices)
		}
	})
}

// slow is a network that carries 64 KiB a second.
type slow struct{ Transport }

type slowConn struct{ Conn }

func (s slow) Dial(ctx context.Context, address string) (Conn, error) {
	return slowly(s.Transport.Dial(ctx, address))
}

func (s slow) Accept() (Conn, error) { return slowly(s.Transport.Accept()) }

func slowly(c Conn, err error) (Conn, error) {
	if err != nil {
		return nil, err
	}
	return slowConn{c}, nil
}

func (s slowConn) Write(b []byte) (n int, err error) {
	for part := range slices.Chunk(b, 64<<10) {
		time.Sleep(time.Second)
		m, err := s.Conn.Write(part)
		if n += m; err != nil {
			return n, err
		}
	}
	return n, nil
}
