package wire

import (
	"bytes"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"mobula/internal/errs"
	"mobula/internal/ids"
)

// randSource draws from a generator whose sequence is fixed for a seed.
type randSource struct{ r *rand.Rand }

func seeded(seed uint64) randSource { return randSource{rand.New(rand.NewPCG(seed, 7))} }

func (s randSource) upTo(n int) int { return s.r.IntN(n + 1) }

// socketPair is two connected sockets.
func socketPair(t testing.TB) (*net.UnixConn, *net.UnixConn) {
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

// connPair is two ends of a connection; b accepts descriptors.
func connPair(t testing.TB, cfg Config) (a, b *Conn) {
	t.Helper()
	ua, ub := socketPair(t)
	var err error
	if a, err = newConn(ua, cfg, false); err != nil {
		t.Fatal(err)
	}
	if b, err = newConn(ub, cfg, true); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, c := range []*Conn{a, b} {
			c.Fail(errs.New(errs.CodeShutdown, "end of test"))
		}
	})
	return a, b
}

// recvN receives at least n messages.
func recvN(t testing.TB, c *Conn, n int) []Msg {
	t.Helper()
	var out []Msg
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

// eventually fails the test if cond does not come true within ten seconds.
func eventually(t testing.TB, what string, cond func() bool) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); !cond(); {
		if time.Now().After(end) {
			t.Fatalf("not within ten seconds: %s", what)
		}
		time.Sleep(time.Millisecond)
	}
}

// wantErr checks an error's kind and that its text has all the words.
func wantErr(t testing.TB, err, kind error, words ...string) {
	t.Helper()
	if err == nil || !isErr(err, kind) {
		t.Fatalf("got %v, want an error that is %v", err, kind)
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("error %q does not say %q", err, w)
		}
	}
}

func putValue(size int, fill byte) *PutValue {
	return &PutValue{ID: ids.RootTask(1, uint64(fill)).Put(1), Value: Value{Meta: []byte("raw"), Data: bytes.Repeat([]byte{fill}, size)}}
}

// rawFrame is a frame of these messages.
func rawFrame(t testing.TB, msgs ...Msg) []byte { return rawFrameFor(t, Version, msgs...) }

// rawFrameFor is a frame for a peer of a version.
func rawFrameFor(t testing.TB, version uint32, msgs ...Msg) []byte {
	t.Helper()
	o := outgoing{enc: encoder{short: version < longIDs}}
	for _, m := range msgs {
		if err := o.add(m, nil); err != nil {
			t.Fatal(err)
		}
	}
	return joined(o.parts(nil))
}

func joined(parts []part) []byte {
	var out []byte
	for _, p := range parts {
		out = append(out, p.data...)
	}
	return out
}

// receive feeds data to a receiver as if it came from a socket, at most step bytes a
// read, then the end of the stream.
func receive(data []byte, step int) (msgs []Msg, err error) {
	x := &receiver{limit: MaxFrame, conn: new(Conn)}
	defer x.release()
	for {
		if msgs, err = x.parse(msgs); err != nil {
			return msgs, err
		}
		dst := x.room()
		n := copy(dst[:min(step, len(dst))], data)
		if n == 0 {
			if err = x.ended(); err == io.EOF {
				err = nil
			}
			return msgs, err
		}
		data = data[n:]
		x.put(n)
	}
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
