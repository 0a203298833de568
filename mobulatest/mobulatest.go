package mobulatest

import (
	"context"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"mobula"
	"mobula/internal/node"
)

const (
	storeBytes   = 64 << 20
	closeTimeout = 30 * time.Second
)

// Start starts a runtime for t. The options add to, and override, the package's own.
func Start(t testing.TB, opts ...mobula.StartOption) *mobula.Cluster {
	t.Helper()
	checked := leaks.begin()
	own := []mobula.StartOption{mobula.WithStore(storeBytes), mobula.WithDir(tempDir(t))}
	c, err := mobula.Start(t.Context(), append(own, opts...)...)
	if err != nil {
		_ = leaks.end(nil) // nothing was started
		t.Fatalf("mobulatest: start: %v", err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), closeTimeout)
		defer cancel()
		if err := c.Close(ctx); err != nil {
			t.Errorf("mobulatest: close: %v", err)
		}
		report(t, c.Faults())
		if err := leaks.end(checked); err != nil {
			t.Errorf("mobulatest: the runtime left something running: %v", err)
		}
	})
	return c
}

// Context starts a runtime for t and gives a context bound to it, which ends with the test.
func Context(t testing.TB, opts ...mobula.StartOption) context.Context {
	t.Helper()
	return Start(t, opts...).Context(t.Context())
}

// Main is the TestMain of a package whose tests use worker processes:
//
//	func TestMain(m *testing.M) { mobulatest.Main(m) }
//
// In a worker, or in a node of StartNode, it serves; otherwise it runs the tests and then fails if goroutines are left.
func Main(m *testing.M) {
	if mobula.WorkerMain() || nodeMain() {
		return
	}
	goleak.VerifyTestMain(m, left()...)
}

// left are what libraries leave behind when a node ends, no leaks of the node: a probe of the gossip that is under way waits for its time-out, which is
// seconds where the node was late; and a NATS server that makes a stream while it is shut down leaves that stream's store open.
func left() []goleak.Option {
	return []goleak.Option{
		goleak.IgnoreAnyFunction("github.com/hashicorp/memberlist.(*Memberlist).probeNode"),
		goleak.IgnoreAnyFunction("github.com/nats-io/nats-server/v2/server.(*fileStore).flushStreamStateLoop"),
		goleak.IgnoreAnyFunction("github.com/nats-io/nats-server/v2/server/ats.Register.func1"),
	}
}

// tempDir is like t.TempDir, but short, since a socket's path has 108 bytes at most; and what a test leaves there that is killed goes with the next start of a node.
func tempDir(t testing.TB) string {
	t.Helper()
	dir, remove, err := node.ProgramDir()
	if err != nil {
		t.Fatalf("mobulatest: %v", err)
	}
	t.Cleanup(func() {
		if err := remove(); err != nil {
			t.Errorf("mobulatest: %v", err)
		}
	})
	return dir
}

// leaks looks for goroutines when the last of several open runtimes is closed: while another is open, its
// goroutines look like a leak.
var leaks leakCheck

type leakCheck struct {
	mu     sync.Mutex
	open   int           // guarded by mu
	before goleak.Option // guarded by mu: goroutines that ran when the first was started
}

func (l *leakCheck) begin() goleak.Option {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open == 0 {
		l.before = goleak.IgnoreCurrent()
	}
	l.open++
	return l.before
}

func (l *leakCheck) end(before goleak.Option) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open--
	if l.open > 0 || before == nil {
		return nil
	}
	return goleak.Find(append(left(), before)...)
}
