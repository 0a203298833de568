package conn

import (
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"mobula/internal/ids"
	"mobula/internal/lend"
	"mobula/internal/testkit"
	"mobula/wire"
)

func init() {
	children["echo-bare"] = echoBare
	children["echo-conn"] = echoConn
}

// pingSize is about a small message in its frame.
const pingSize = 64

func echoBare(path string) error {
	c, err := net.Dial("unix", path)
	if err != nil {
		return err
	}
	b := make([]byte, 4<<10)
	for {
		n, err := c.Read(b)
		if err == io.EOF {
			return c.Close()
		}
		if err != nil {
			return err
		}
		if _, err := c.Write(b[:n]); err != nil {
			return err
		}
	}
}

func echoConn(path string) error {
	uc, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return err
	}
	c, err := overSocket(uc, Config{}, true, true)
	if err != nil {
		return err
	}
	err = c.Serve(new(lend.Lender), func(batch []wire.Msg) error { return c.TrySend(batch...) })
	c.Close()
	if err == io.EOF { // the benchmark is over
		return nil
	}
	return err
}

// withChild starts the child role and hands its connection to f.
func withChild(tb testing.TB, role string, f func(uc *net.UnixConn)) {
	tb.Helper()
	path := filepath.Join(tb.TempDir(), "s")
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		tb.Fatal(err)
	}
	defer l.Close()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childEnv+"="+role, childArg+"="+path)
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		tb.Fatal(err)
	}
	if err := l.SetDeadline(time.Now().Add(testkit.Patience())); err != nil {
		tb.Fatal(err)
	}
	uc, err := l.AcceptUnix()
	if err != nil {
		tb.Fatal(err)
	}
	f(uc)
	uc.Close() // a second close does no harm
	if err := cmd.Wait(); err != nil {
		tb.Error(err)
	}
}

func BenchmarkPingPongBare(b *testing.B) {
	withChild(b, "echo-bare", func(uc *net.UnixConn) {
		buf := make([]byte, pingSize)
		for b.Loop() {
			if _, err := uc.Write(buf); err != nil {
				b.Fatal(err)
			}
			if _, err := io.ReadFull(uc, buf); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkPingPong(b *testing.B) {
	withChild(b, "echo-conn", func(uc *net.UnixConn) {
		c, err := overSocket(uc, Config{}, false, false)
		if err != nil {
			b.Fatal(err)
		}
		task := ids.RootTask(1, 1)
		b.ReportAllocs()
		for b.Loop() {
			if err := c.Send(&wire.StreamAck{Task: task, Consumed: 7}); err != nil {
				b.Fatal(err)
			}
			if _, err := c.Recv(); err != nil {
				b.Fatal(err)
			}
		}
		c.Close()
	})
}

// BenchmarkFlood is one sender's messages a second when it waits for nothing, echoed.
func BenchmarkFlood(b *testing.B) {
	withChild(b, "echo-conn", func(uc *net.UnixConn) {
		c, err := overSocket(uc, Config{}, false, false)
		if err != nil {
			b.Fatal(err)
		}
		task := ids.RootTask(1, 1)
		done := make(chan error, 1)
		go func() {
			n, reads := 0, 0
			for n < b.N {
				batch, err := c.Recv()
				if err != nil {
					done <- err
					return
				}
				n += len(batch)
				reads++
			}
			b.ReportMetric(float64(n)/float64(reads), "msgs/read")
			done <- nil
		}()
		b.ReportAllocs()
		b.ResetTimer()
		for range b.N {
			if err := c.Send(&wire.StreamAck{Task: task, Consumed: 7}); err != nil {
				b.Fatal(err)
			}
		}
		if err := <-done; err != nil {
			b.Fatal(err)
		}
		c.Close()
	})
}
