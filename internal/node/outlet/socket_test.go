package outlet

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/goleak"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/wire"
	"mobula/wire/conn"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// outletTo is an outlet with small bounds, and the client's end of its connection, which nobody reads.
func outletTo(t *testing.T) (*Socket, *conn.Conn) {
	t.Helper()
	cfg := conn.Config{SoftBacklog: 256 << 10, HardBacklog: 1 << 20}
	dir := filepath.Join(t.TempDir(), "n") // the directory itself is open to others
	l, err := conn.Listen(filepath.Join(dir, "node.sock"), cfg)
	if err != nil {
		t.Fatal(err)
	}
	out, ended := &Socket{}, make(chan struct{})
	served := make(chan error, 1)
	go func() {
		served <- l.Serve(func(*wire.Hello, conn.Peer) (*conn.Session, error) {
			return &conn.Session{Welcome: &wire.Welcome{}, Run: func(c *conn.Conn, err error) {
				defer close(ended)
				if err == nil {
					out.Open(c)
					_, _ = c.Recv() // until the connection is over
				}
			}}, nil
		})
	}()
	c, _, _, err := conn.Dial(t.Context(), l.Path(), wire.Hello{Role: wire.RoleTool, PID: int32(os.Getpid())}, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.Fail(errs.New(errs.CodeShutdown, "end of test"))
		<-ended
		if err := errors.Join(l.Close(), <-served); err != nil {
			t.Error(err)
		}
	})
	return out, c
}

// A client that does not read loses nothing and is not cut off, however much waits for it: it gets
// everything, in order, once it reads, with the descriptors between.
func TestAClientThatDoesNotReadLosesNothing(t *testing.T) {
	out, c := outletTo(t)
	const all = 400
	data := bytes.Repeat([]byte("x"), 100_000)
	for i := range all {
		if i%100 == 50 {
			f, err := os.Open(os.DevNull)
			if err != nil {
				t.Fatal(err)
			}
			out.Push(&wire.MapFile{File: uint32(i), Opened: f})
		} else {
			out.Push(&wire.Resolved{ID: ids.RootTask(1, uint64(i)).Put(1), Result: wire.Result{Kind: wire.ResultInline, Value: wire.Value{Data: data}}})
		}
		if i%7 == 0 {
			out.Flush() // more and more of them find that somebody waits for room
		}
	}
	out.Flush()
	for i := 0; i < all; {
		batch, err := c.Recv()
		if err != nil {
			t.Fatalf("after %d of %d messages: %v", i, all, err)
		}
		for _, m := range batch {
			switch m := m.(type) {
			case *wire.MapFile:
				if m.File != uint32(i) || m.Opened == nil {
					t.Fatalf("message %d is %+v", i, m)
				}
				if err := m.Opened.Close(); err != nil {
					t.Error(err)
				}
			case *wire.Resolved:
				if m.ID != ids.RootTask(1, uint64(i)).Put(1) || len(m.Result.Value.Data) != len(data) {
					t.Fatalf("message %d is of %v, %d bytes", i, m.ID, len(m.Result.Value.Data))
				}
			default:
				t.Fatalf("message %d is a %T", i, m)
			}
			i++
		}
	}
}

// What waits for a client goes with its connection, and so does who waits.
func TestAnOutletThatIsClosedWaitsForNobody(t *testing.T) {
	out, c := outletTo(t)
	fill := func() {
		for range 100 {
			out.Push(&wire.Resolved{Result: wire.Result{Kind: wire.ResultInline, Value: wire.Value{Data: make([]byte, 100_000)}}})
		}
		out.Flush()
	}
	fill()
	c.Fail(errs.New(errs.CodeShutdown, "the client leaves"))
	free := func() bool {
		out.mu.Lock()
		defer out.mu.Unlock()
		return !out.busy && len(out.pending) == 0
	}
	eventually(t, "nobody has the writer's role", free)
	fill() // of somebody who does not know yet
	eventually(t, "nothing is kept for a client that is gone", free)
}

func eventually(t *testing.T, what string, cond func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !cond(); {
		if time.Now().After(end) {
			t.Fatalf("not in time: %s", what)
		}
		time.Sleep(time.Millisecond)
	}
}
