package outlet

import (
	"bytes"
	"os"
	"testing"
	"testing/synctest"

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
	near, c := conn.Pair(conn.Config{SoftBacklog: 256 << 10, HardBacklog: 1 << 20})
	out, ended := &Socket{}, make(chan struct{})
	go func() { // as a listener serves it
		defer close(ended)
		out.Open(near)
		_, _ = near.Recv() // until the connection is over
		_ = near.Close()
	}()
	t.Cleanup(func() {
		c.Fail(errs.New(errs.CodeShutdown, "end of test"))
		<-ended
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
	synctest.Test(t, func(t *testing.T) {
		out, c := outletTo(t)
		fill := func() {
			for range 100 {
				out.Push(&wire.Resolved{Result: wire.Result{Kind: wire.ResultInline, Value: wire.Value{Data: make([]byte, 100_000)}}})
			}
			out.Flush()
			synctest.Wait()
		}
		free := func() bool {
			out.mu.Lock()
			defer out.mu.Unlock()
			return !out.busy && len(out.pending) == 0
		}
		fill() // which the connection takes whole
		fill()
		if free() {
			t.Fatal("nobody waits for the client to read")
		}
		c.Fail(errs.New(errs.CodeShutdown, "the client leaves"))
		synctest.Wait()
		if !free() {
			t.Error("somebody has the writer's role still")
		}
		fill() // of somebody who does not know yet
		if !free() {
			t.Error("something is kept for a client that is gone")
		}
	})
}
