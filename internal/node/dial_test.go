package node

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"mobula/internal/errs"
	"mobula/internal/link"
	"mobula/internal/node/jobs"
	"mobula/internal/node/member"
	"mobula/internal/node/outlet"
	"mobula/internal/state"
	"mobula/internal/testkit"
	"mobula/wire"
)

// A driver that is closed while it looks for its node again leaves no connection and no mapping
// behind, whoever was first.
func TestCloseWhileTheDriverRejoins(t *testing.T) {
	n, _ := running(t, Config{Logger: slog.New(slog.DiscardHandler)}, Telemetry{})
	for i := range 20 {
		d, err := Dial(t.Context(), filepath.Join(n.dir, SocketName), DialConfig{Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		first := d.links[0]
		var wg sync.WaitGroup
		wg.Go(func() { _ = first.Conn.Close() }) // the driver's reader ends, and it dials again
		wg.Go(func() {
			time.Sleep(time.Duration(i) * 50 * time.Microsecond) // not to wait: to be at another point each time
			ctx, cancel := context.WithTimeout(context.Background(), testkit.Patience())
			defer cancel()
			_ = d.Close(ctx) // of a connection that is closed already it says so
		})
		wg.Wait()
		late, err := link.Dial(t.Context(), d.address, d.hello)
		if errors.Is(err, errs.ErrOwnerDied) {
			continue // the job is over, as it should be
		}
		if err != nil {
			t.Fatalf("neither let in nor told that the job is over: %v", err)
		}
		if d.keep(late) {
			t.Error("a driver that is closed keeps a new connection, which nobody closes")
		}
		if err := late.Close(); err != nil {
			t.Error(err)
		}
	}
}

// What a session that is over says of its client does not touch the one that came after it.
func TestAReturnedClientsPinsAreItsOwn(t *testing.T) {
	n, c := running(t, Config{Logger: slog.New(slog.DiscardHandler)}, Telemetry{})
	h := putLarge(t, c, 1<<20)
	got, err := c.Get1(t.Context(), h)
	if err != nil {
		t.Fatal(err)
	}
	defer got.Release()
	old := n.sessions.get(c.ID())
	other, err := n.sessions.begin(old.role, old.job, old.pid) // so that the job goes on
	if err != nil {
		t.Fatal(err)
	}
	other.Outlet = &outlet.Local{Deliver: func([]wire.Msg) {}}
	if err := n.members.join(other); err != nil {
		t.Fatal(err)
	}
	defer n.members.leave(other, nil)
	back := makeSession(old.id, old.role, old.job, old.pid) // of the same client, again
	back.nth, back.Outlet = 1, old.Outlet
	defer back.finish()
	n.jobs.ref.Deliver(jobs.Gone{Client: old.id})
	if err := n.members.join(back); err != nil {
		t.Fatal(err)
	}
	stepped := func() { // what was said before has been
		t.Helper()
		if err := n.jobs.ask(nil, func(a jobs.Ask) jobs.Event { return jobs.Guest{Ask: a} }); err != nil {
			t.Fatal(err)
		}
	}
	n.members.do(old, old.ref, member.DropPins)
	stepped()
	if s, err := n.StoreStats(t.Context()); err != nil || s.Pinned == 0 {
		t.Errorf("the old session's end took the new one's pins: %+v, %v", s, err)
	}
	n.members.do(back, back.ref, member.DropPins)
	stepped()
	if s, err := n.StoreStats(t.Context()); err != nil || s.Pinned != 0 {
		t.Errorf("the last session's end leaves pins: %+v, %v", s, err)
	}
}

// A session may be over before the goroutine that welcomed its client has opened its outlet.
func TestAnOutletIsClosedThoughItWasNotYetOpen(t *testing.T) {
	n, _ := running(t, Config{Logger: slog.New(slog.DiscardHandler)}, Telemetry{})
	l, err := link.Dial(t.Context(), filepath.Join(n.dir, SocketName), wire.Hello{Role: wire.RoleTool})
	if err != nil {
		t.Fatal(err)
	}
	before := l.Conn.Counts().SentBytes
	var o outlet.Socket
	o.Push(&wire.Drain{})
	o.Close()
	o.Open(l.Conn)
	if err := l.Conn.Send(&wire.Drain{}); !errors.Is(err, errs.ErrShutdown) {
		t.Errorf("the connection is open: %v", err)
	}
	if l.Conn.Counts().SentBytes == before {
		t.Error("what was pushed before was not sent")
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
}

// A node that has gone need not be told that its driver leaves.
func TestLeavingANodeThatHasGone(t *testing.T) {
	n, _ := running(t, Config{Logger: slog.New(slog.DiscardHandler)}, Telemetry{})
	l, err := link.Dial(t.Context(), filepath.Join(n.dir, SocketName), wire.Hello{Role: wire.RoleTool})
	if err != nil {
		t.Fatal(err)
	}
	n.sessions.get(l.Welcome.Client).Close()
	for end := time.Now().Add(testkit.Patience()); !l.Conn.Gone(); { // nobody reads: a write finds out
		if _ = l.Conn.Send(&wire.Drain{}); time.Now().After(end) {
			t.Fatal("a write does not find out that the node has gone")
		}
	}
	if err := (port{l}).Close(); err != nil {
		t.Errorf("leaving gave %v", err)
	}
	if err := l.Close(); err != nil {
		t.Errorf("leaving again gave %v", err)
	}
}

// Who asks a node whose directory is gone is told at once that it is gone for good, and not when it is back no more.
func TestANodeWhoseDirectoryIsGone(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "n")
	n, err := startIn(t, Config{Dir: dir, Keep: true, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	d, err := Dial(t.Context(), filepath.Join(dir, SocketName), DialConfig{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close(context.Background()) })
	closeNode(t, n)
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Request(testkit.Within(t), state.MethodPing, nil); !errors.Is(err, errs.ErrOwnerDied) || !strings.Contains(err.Error(), "its directory is gone") {
		t.Errorf("got %v", err)
	}
}
