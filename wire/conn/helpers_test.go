package conn

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/wire"
)

// rawPair is two connected sockets.
func rawPair(t testing.TB) (*net.UnixConn, *net.UnixConn) {
	t.Helper()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	var out [2]*net.UnixConn
	for i, fd := range fds {
		f := os.NewFile(uintptr(fd), "pair")
		c, err := net.FileConn(f)
		if err != nil {
			t.Fatal(err)
		}
		f.Close() // FileConn made its own
		out[i] = c.(*net.UnixConn)
		t.Cleanup(func() { c.Close() })
	}
	return out[0], out[1]
}

// socketPair is both ends of a connection over a socket; b accepts descriptors.
func socketPair(t testing.TB, cfg Config) (a, b *Conn) {
	t.Helper()
	ua, ub := rawPair(t)
	var err error
	if a, err = overSocket(ua, cfg, false, false); err != nil {
		t.Fatal(err)
	}
	if b, err = overSocket(ub, cfg, true, true); err != nil {
		t.Fatal(err)
	}
	endWith(t, a, b)
	return a, b
}

// memoryPair is both ends of a connection in memory.
func memoryPair(t testing.TB, cfg Config) (a, b *Conn) {
	t.Helper()
	a, b = Pair(cfg)
	endWith(t, a, b)
	return a, b
}

func endWith(t testing.TB, conns ...*Conn) {
	t.Cleanup(func() {
		for _, c := range conns {
			c.Fail(errs.New(errs.CodeShutdown, "end of test"))
		}
	})
}

// recvN receives at least n messages.
func recvN(t testing.TB, c *Conn, n int) []wire.Msg {
	t.Helper()
	var out []wire.Msg
	for len(out) < n {
		batch, err := c.Recv()
		if err != nil {
			t.Fatalf("after %d of %d messages: %v", len(out), n, err)
		}
		if len(batch) == 0 {
			t.Fatal("an empty batch")
		}
		out = append(out, batch...)
	}
	return out
}

// recorded is a message of each kind, as package wire keeps them for its own tests.
func recorded(t testing.TB) (all []wire.Msg) {
	t.Helper()
	paths, err := filepath.Glob(fmt.Sprintf("../testdata/v%d/*.frame", wire.Version))
	if err != nil || len(paths) < 40 {
		t.Fatalf("recorded frames: %d, %v", len(paths), err)
	}
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		msgs, err := received(data)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, msgs...)
	}
	return all
}

// received is what a reader makes of data, then the end of the stream.
func received(data []byte) (msgs []wire.Msg, err error) {
	r := wire.FrameReader{Limit: wire.MaxFrame}
	defer r.Release()
	for {
		batch, err := r.Next()
		if msgs = append(msgs, batch...); err != nil {
			return msgs, err
		}
		n := copy(r.Room(), data)
		if n == 0 {
			if err = r.Ended(); err == io.EOF {
				err = nil
			}
			return msgs, err
		}
		data = data[n:]
		r.Put(n)
	}
}

// rawFrame is a frame of these messages.
func rawFrame(t testing.TB, msgs ...wire.Msg) (out []byte) {
	t.Helper()
	w := wire.NewFrameWriter(0)
	for _, m := range msgs {
		if err := w.Add(m, nil); err != nil {
			t.Fatal(err)
		}
	}
	for _, p := range w.Parts(nil) {
		out = append(out, p.Data...)
	}
	return out
}

// wantErr checks an error's kind and that its text has all the words.
func wantErr(t testing.TB, err, kind error, words ...string) {
	t.Helper()
	if err == nil || !errors.Is(err, kind) {
		t.Fatalf("got %v, want an error that is %v", err, kind)
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("error %q does not say %q", err, w)
		}
	}
}

func putValue(size int, fill byte) *wire.PutValue {
	return &wire.PutValue{ID: ids.RootTask(1, uint64(fill)).Put(1), Value: wire.Value{Meta: []byte("raw"), Data: bytes.Repeat([]byte{fill}, size)}}
}

// openFiles is the number of this process's descriptors.
func openFiles(t testing.TB) int {
	t.Helper()
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(list)
}
