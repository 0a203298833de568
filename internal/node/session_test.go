package node

import (
	"errors"
	"log/slog"
	"os"
	"strings"
	"testing"

	"mobula/internal/errs"
	"mobula/internal/node/outlet"
	"mobula/internal/testkit"
	"mobula/wire"
	"mobula/wire/conn"
)

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
	n.sessions.get(w.Client).Outlet.(*outlet.Socket).Cut(errs.New(errs.CodeProtocol, "frame 7 says nothing"))
	log.find(t, "a client was cut off", "frame 7 says nothing", "client="+w.Client.String())
	testkit.Eventually(t, "the job is over", func() bool { return n.owners.get(w.Job) == nil })
	hello.Job, hello.Client, hello.Token = w.Job, w.Client, w.Token
	_, _, _, err = conn.Dial(t.Context(), n.Address(), hello, conn.Config{})
	if !errors.Is(err, errs.ErrOwnerDied) || !strings.Contains(err.Error(), "the node had cut its driver off") || !strings.Contains(err.Error(), "frame 7 says nothing") {
		t.Errorf("a driver that comes back hears %v", err)
	}
}
