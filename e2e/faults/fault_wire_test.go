package faults

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"mobula"
	"mobula/e2e/harness"
	"mobula/internal/node"
	"mobula/internal/state"
	"mobula/wire"
	"mobula/wire/conn"
)

// helloOf is what a client of the role says first, as bytes.
func helloOf(t *testing.T, ctx context.Context, role wire.Role) []byte {
	t.Helper()
	path := filepath.Join(harness.TempDir(t), "s")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	dialled := make(chan error, 1)
	go func() {
		_, _, _, err := conn.Dial(ctx, path, wire.Hello{Role: role, PID: int32(os.Getpid())}, conn.Config{})
		dialled <- err
	}()
	c, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	head := make([]byte, 8)
	if _, err := io.ReadFull(c, head); err != nil {
		t.Fatal(err)
	}
	body := make([]byte, binary.LittleEndian.Uint32(head[4:]))
	if _, err := io.ReadFull(c, body); err != nil {
		t.Fatal(err)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	if err := <-dialled; err == nil {
		t.Fatal("a node that says nothing was taken for one")
	}
	return append(head, body...)
}

// frameOf is a frame that announces so many bytes and has those of body.
func frameOf(size uint32, body string) []byte {
	b := append([]byte("Mb\x01\x00"), binary.LittleEndian.AppendUint32(nil, size)...)
	return append(b, body...)
}

// raw opens a connection on which the test itself says what it likes.
func raw(t *testing.T, ctx context.Context, address string) net.Conn {
	t.Helper()
	c, err := new(net.Dialer).DialContext(ctx, "unix", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() }) // the node may have closed it
	if at, ok := ctx.Deadline(); ok {
		if err := c.SetDeadline(at); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

// lastWords is all that the node says until it closes the connection.
func lastWords(t *testing.T, c net.Conn) string {
	t.Helper()
	all, err := io.ReadAll(c)
	if err != nil && !errors.Is(err, syscall.ECONNRESET) { // it closed with something unread
		t.Errorf("the node does not close the connection: %v", err)
	}
	return string(all)
}

// busy runs tasks until the function it gives is called, which tells how they did.
func busy(t *testing.T, ctx context.Context) (stop func()) {
	t.Helper()
	l := &load{t: t, ctx: ctx}
	end := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			select {
			case <-end:
				return
			default:
			}
			if err := l.small(50); err != nil {
				t.Error(err)
				return
			}
		}
	})
	return sync.OnceFunc(func() { close(end); wg.Wait() })
}

// Clients that break the protocol, before and after they are let in, are told and dropped, each
// alone; tasks run on beside them, and nothing stays of them.
func TestFaultFrames(t *testing.T) {
	t.Parallel() // it mostly waits
	ctx, cancel := harness.Limit(t)
	defer cancel()
	n, ctx := harness.StartNode(t, ctx, node.Config{CPUs: 1, StoreBytes: 16 * harness.MiB})
	hello := helloOf(t, ctx, wire.RoleDriver)
	before := components(n)
	stop := busy(t, ctx)
	defer stop()
	silent := raw(t, ctx, n.Address())
	since := time.Now()
	for what, bad := range map[string]struct {
		say  []byte
		word string
	}{
		"another protocol":    {[]byte("GET / HTTP/1.1\r\nHost: mobula\r\n\r\n"), "does not speak this protocol"},
		"a frame of 4 GiB":    {frameOf(1<<32-1, "x"), "announces 4294967295 bytes"},
		"a malformed message": {frameOf(8, "\x0a\x06\x08\xff\xff\xff\xff\xff"), "malformed Hello at byte 1 of 6"},
	} {
		for _, first := range [][]byte{nil, hello} { // before and after it was let in
			c := raw(t, ctx, n.Address())
			if _, err := c.Write(append(bytes.Clone(first), bad.say...)); err != nil {
				t.Fatal(err)
			}
			if got := lastWords(t, c); !strings.Contains(got, bad.word) {
				t.Errorf("%s after %d bytes of hello: the node says %q, want %q", what, len(first), got, bad.word)
			}
		}
	}
	for _, cut := range [][]byte{hello[:5], hello[:len(hello)-1], append(bytes.Clone(hello), frameOf(1000, "\x0a\x02")...), append(bytes.Clone(hello), "Mb"...)} {
		c := raw(t, ctx, n.Address())
		if _, err := c.Write(cut); err != nil {
			t.Fatal(err)
		}
		if err := c.(*net.UnixConn).CloseWrite(); err != nil {
			t.Fatal(err)
		}
		lastWords(t, c) // the node closes its end too
	}
	if got := lastWords(t, silent); !strings.Contains(got, "said nothing for 5s") || time.Since(since) > 10*time.Second {
		t.Errorf("to a client that says nothing the node says %q, after %v", got, time.Since(since))
	}
	stop()
	harness.Eventually(t, ctx, "nothing stays of those clients", func() bool { return components(n) == before })
	harness.Works(t, ctx)
}

// A thousand clients connect at once, ask, and are answered, beside a thousand that say nothing.
func TestFaultThousandClients(t *testing.T) {
	ctx, cancel := harness.Limit(t)
	defer cancel()
	n, ctx := harness.StartNode(t, ctx, node.Config{CPUs: 1, StoreBytes: 16 * harness.MiB})
	stop := busy(t, ctx)
	defer stop()
	var wg sync.WaitGroup
	for i := range 1000 {
		raw(t, ctx, n.Address())
		wg.Go(func() {
			if err := asks(ctx, n.Address(), uint64(i)); err != nil {
				t.Errorf("client %d: %v", i, err)
			}
		})
	}
	wg.Wait()
	stop()
	harness.Works(t, ctx)
}

// asks connects as a tool, asks how the node is, and leaves.
func asks(ctx context.Context, address string, req uint64) error {
	c, _, _, err := conn.Dial(ctx, address, wire.Hello{Role: wire.RoleTool, PID: int32(os.Getpid())}, conn.Config{})
	if err != nil {
		return err
	}
	defer context.AfterFunc(ctx, func() { c.Fail(context.Cause(ctx)) })()
	if err := c.Send(&wire.Request{Req: req, Method: state.MethodStatus}); err != nil {
		return err
	}
	for {
		batch, err := c.Recv()
		if err != nil {
			return err
		}
		for _, m := range batch {
			if r, ok := m.(*wire.Reply); ok {
				if r.Req != req || r.Err != nil || len(r.Body) == 0 {
					return fmt.Errorf("answer %d of %d bytes: %w", r.Req, len(r.Body), r.Err)
				}
				return c.Close()
			}
		}
	}
}

// A thousand drivers: each has a job and objects of its own, and all of it goes with them.
func TestFaultManyDrivers(t *testing.T) {
	ctx, cancel := harness.Limit(t)
	defer cancel()
	n, ctx := harness.StartNode(t, ctx, node.Config{CPUs: 1, StoreBytes: 64 * harness.MiB})
	before := components(n)
	var wg sync.WaitGroup
	for i := range harness.Size(100, 1000) {
		wg.Go(func() {
			c, err := mobula.Connect(ctx, n.Address(), mobula.ConnectLogger(harness.Quiet()))
			if err != nil {
				t.Errorf("driver %d: %v", i, err)
				return
			}
			mine := c.Context(ctx)
			ref, err := mobula.Put(mine, harness.Array(128<<10, float64(i)))
			if err != nil {
				t.Errorf("driver %d: %v", i, err)
			} else if xs, err := ref.Get(mine); err != nil || !harness.Holds(xs, 128<<10, float64(i)) {
				t.Errorf("driver %d: %d elements, %v", i, len(xs), err)
			}
			if err := c.Close(ctx); err != nil {
				t.Errorf("driver %d: %v", i, err)
			}
		})
	}
	wg.Wait()
	harness.Eventually(t, ctx, "nothing stays of the drivers", func() bool {
		s, err := n.StoreStats(ctx)
		return err == nil && s.Objects == 0 && components(n) == before
	})
	harness.Works(t, ctx)
}
