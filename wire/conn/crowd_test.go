package conn

import (
	"fmt"
	"net"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"mobula/internal/lend"
	"mobula/internal/testkit"
	"mobula/wire"
)

func TestAThousandClientsAtOnce(t *testing.T) {
	l := listen(t, Config{}, accept(func(c *Conn) {
		_ = c.Serve(new(lend.Lender), func(batch []wire.Msg) error { return c.TrySend(batch...) })
	}))
	const n = 1000
	conns := make([]*Conn, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			c, _, _, err := Dial(t.Context(), l.Path(), wire.Hello{PID: int32(i)}, Config{})
			if err != nil {
				t.Errorf("client %d: %v", i, err)
				return
			}
			conns[i] = c
			if err := c.Send(&wire.Credit{Bytes: int64(i)}, putValue(2000, byte(i))); err != nil {
				t.Errorf("client %d: %v", i, err)
				return
			}
			if got := recvN(t, c, 2); got[0].(*wire.Credit).Bytes != int64(i) {
				t.Errorf("client %d got another's message", i)
			}
		})
	}
	wg.Wait()
	if t.Failed() {
		return
	}
	if l.Conns() != n {
		t.Errorf("the node knows %d of %d", l.Conns(), n)
	}
	kib := heapOf(func() {
		for _, c := range conns {
			c.Close()
		}
		clear(conns)
		testkit.Eventually(t, "all are gone", func() bool { return l.Conns() == 0 })
	}) / n >> 10
	t.Logf("an idle connection holds %d KiB for both ends", kib)
	if kib > 32 {
		t.Errorf("an idle connection holds %d KiB for both ends, want at most 32", kib)
	}
}

func init() {
	children["poor-node"] = func(path string) error {
		if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 24, Max: 24}); err != nil {
			return err
		}
		l, err := Listen(path, Config{HandshakeTimeout: 50 * time.Millisecond})
		if err != nil {
			return err
		}
		fmt.Println("ready")
		return l.Serve(accept(nil))
	}
}

func TestNodeOutOfDescriptorsGoesOn(t *testing.T) {
	path := socketPath(t)
	startNode(t, "poor-node", path)
	for range 60 { // silent ones, more than the node has descriptors for
		c, err := net.Dial("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
	}
	c, _, _, err := Dial(t.Context(), path, wire.Hello{}, Config{})
	if err != nil {
		t.Fatalf("the node did not recover: %v", err)
	}
	c.Close()
}
