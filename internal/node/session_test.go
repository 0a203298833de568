package node

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/wire"
	"mobula/wire/conn"
)

// outletTo is an outlet with small bounds, and the client's end of its connection, which nobody reads.
func outletTo(t *testing.T) (*socket, *conn.Conn) {
	t.Helper()
	cfg := conn.Config{SoftBacklog: 256 << 10, HardBacklog: 1 << 20}
	near, c := conn.Pair(cfg)
	out, ended := &socket{}, make(chan struct{})
	go func() { // as a listener serves it
		defer close(ended)
		out.open(near)
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

// The node has ended the connection of a driver: its log says so, and the driver hears why its job
// is gone.
func TestADriverThatWasCutOffHearsWhy(t *testing.T) {
	log := &lines{more: make(chan struct{}, 1)}
	n, _ := running(t, Config{Logger: slog.New(slog.NewTextHandler(log, nil))}, Telemetry{})
	hello := wire.Hello{Role: wire.RoleDriver, PID: int32(os.Getpid())}
	c, w, f, err := conn.Dial(t.Context(), n.Address(), hello, conn.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }() // the node has closed it
	if err := f.Close(); err != nil {
		t.Error(err)
	}
	out := n.clients.get(w.Client).outlet.(*socket)
	eventually(t, "the session is open", func() bool {
		out.mu.Lock()
		defer out.mu.Unlock()
		return out.conn != nil
	})
	out.conn.Fail(errs.New(errs.CodeProtocol, "frame 7 says nothing"))
	log.find(t, "a client was cut off", "frame 7 says nothing", "client="+w.Client.String())
	eventually(t, "the job is over", func() bool { return n.jobs.get(w.Job) == nil })
	hello.Job, hello.Client, hello.Token = w.Job, w.Client, w.Token
	_, _, _, err = conn.Dial(t.Context(), n.Address(), hello, conn.Config{})
	if !errors.Is(err, errs.ErrOwnerDied) || !strings.Contains(err.Error(), "the node had cut its driver off") || !strings.Contains(err.Error(), "frame 7 says nothing") {
		t.Errorf("a driver that comes back hears %v", err)
	}
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
