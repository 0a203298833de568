package gcstest

import (
	"net"
	"testing"

	"github.com/nats-io/nats-server/v2/server"

	"mobula/internal/testkit"
)

// Server starts a NATS server with JetStream for a test, and gives its URL.
func Server(t *testing.T) string {
	t.Helper()
	return Start(t, &server.Options{JetStream: true, StoreDir: t.TempDir()})
}

// Start starts a NATS server with options of the test's own, on a free port of the loopback interface, and gives its URL.
func Start(t *testing.T, opts *server.Options) string {
	t.Helper()
	opts.Host, opts.Port = "127.0.0.1", -1
	return run(t, opts).ClientURL()
}

// Stopping starts a NATS server with JetStream for a test, which stop stops and start starts again, with what it had and at the same URL.
func Stopping(t *testing.T) (url string, stop, start func()) {
	t.Helper()
	opts := &server.Options{JetStream: true, StoreDir: t.TempDir(), Host: "127.0.0.1", Port: -1}
	ns := run(t, opts)
	url = ns.ClientURL()
	opts.Port = ns.Addr().(*net.TCPAddr).Port
	stop = func() { end(ns) }
	start = func() {
		t.Helper()
		ns = run(t, opts)
	}
	return url, stop, start
}

// run runs a server until the test ends.
func run(t *testing.T, opts *server.Options) *server.Server {
	t.Helper()
	opts.NoLog, opts.NoSigs = true, true
	ns, err := server.NewServer(opts)
	if err != nil {
		t.Fatal(err)
	}
	ns.Start()
	t.Cleanup(func() { end(ns) })
	if !ns.ReadyForConnections(testkit.Patience()) {
		t.Fatal("the server does not start")
	}
	return ns
}

func end(ns *server.Server) {
	ns.Shutdown()
	ns.WaitForShutdown()
}
