package gcstest

import (
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

// Server starts a NATS server with JetStream for a test, and gives its URL.
func Server(t *testing.T) string {
	t.Helper()
	return Start(t, &server.Options{JetStream: true, StoreDir: t.TempDir()})
}

// Start starts a NATS server with options of the test's own, on a free port of the loopback interface, and gives its URL.
func Start(t *testing.T, opts *server.Options) string {
	t.Helper()
	opts.Host, opts.Port, opts.NoLog, opts.NoSigs = "127.0.0.1", -1, true, true
	ns, err := server.NewServer(opts)
	if err != nil {
		t.Fatal(err)
	}
	ns.Start()
	t.Cleanup(func() {
		ns.Shutdown()
		ns.WaitForShutdown()
	})
	if !ns.ReadyForConnections(10 * time.Second) {
		t.Fatal("the server does not start")
	}
	return ns.ClientURL()
}
