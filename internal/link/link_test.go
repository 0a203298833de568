package link

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"

	"mobula/internal/errs"
	"mobula/objectstore/segment"
	"mobula/wire"
	"mobula/wire/conn"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// node serves one kind of welcome on a socket.
func node(t *testing.T, s func() *conn.Session) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "link") // short: a socket's path has 107 bytes at most
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	path := filepath.Join(dir, "s")
	l, err := conn.Listen(path, conn.Config{})
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() {
		served <- l.Serve(func(*wire.Hello, conn.Peer) (*conn.Session, error) { return s(), nil })
	}()
	t.Cleanup(func() {
		if err := errors.Join(l.Close(), <-served); err != nil {
			t.Error(err)
		}
	})
	return path
}

func run(c *conn.Conn, _ error) { _, _ = c.Recv() }

func TestDialMapsTheSegment(t *testing.T) {
	const size = 1 << 20
	seg, err := segment.Open(segment.Config{Size: size})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = seg.Close(true) }()
	if err := seg.Reserve([]segment.Range{{Off: 0, Size: 4096}}); err != nil {
		t.Fatal(err)
	}
	path := node(t, func() *conn.Session {
		return &conn.Session{Welcome: &wire.Welcome{Node: "n", SegmentSize: size}, Segment: seg.File(), Run: run}
	})
	l, err := Dial(t.Context(), path, wire.Hello{Role: wire.RoleDriver})
	if err != nil {
		t.Fatal(err)
	}
	w, err := l.Memory.Map(wire.Extent{Off: 64, Size: 3}, true)
	if err != nil {
		t.Fatal(err)
	}
	copy(w, "abc")
	r, err := l.Memory.Map(wire.Extent{Off: 64, Size: 3}, false)
	if err != nil || string(r) != "abc" {
		t.Errorf("read back %q, %v", r, err)
	}
	if l.Welcome.Node != "n" {
		t.Errorf("welcome %+v", l.Welcome)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
}

func TestDialOfAToolHasNoSegment(t *testing.T) {
	path := node(t, func() *conn.Session { return &conn.Session{Welcome: &wire.Welcome{}, Run: run} })
	l, err := Dial(t.Context(), path, wire.Hello{Role: wire.RoleTool})
	if err != nil {
		t.Fatal(err)
	}
	if l.Memory != nil {
		t.Error("a segment was mapped that nobody sent")
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
}

func TestDialRefusesASegmentLargerThanItsFile(t *testing.T) {
	seg, err := segment.Open(segment.Config{Size: 4096})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = seg.Close(true) }()
	path := node(t, func() *conn.Session {
		return &conn.Session{Welcome: &wire.Welcome{SegmentSize: 1 << 30}, Segment: seg.File(), Run: run}
	})
	if _, err := Dial(t.Context(), path, wire.Hello{Role: wire.RoleDriver}); !errors.Is(err, errs.ErrProtocol) {
		t.Errorf("got %v, want a protocol error instead of a SIGBUS to come", err)
	}
}

func TestDialOfNobody(t *testing.T) {
	if _, err := Dial(t.Context(), filepath.Join(t.TempDir(), "none"), wire.Hello{}); !errors.Is(err, errs.ErrNoNode) {
		t.Errorf("got %v", err)
	}
}
