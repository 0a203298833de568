package node

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"mobula/internal/client"
	"mobula/internal/direct/shell"
	"mobula/internal/errs"
	"mobula/internal/lend"
	"mobula/internal/link"
	"mobula/internal/registry"
	"mobula/internal/state"
	"mobula/wire"
)

// DialConfig is how a driver in another process joins.
type DialConfig struct {
	Namespace string
	Logger    *slog.Logger
	WarnAfter time.Duration  // a get that waits longer logs why; default 60 s, as Ray's fetch_warn_timeout
	Others    []wire.Program // what workers of further languages run
}

// rejoinTimeout is how long a driver looks for its node after the connection broke: a
// restart takes a second or two.
const rejoinTimeout = 30 * time.Second

// Driver is a client in a process of its own.
type Driver struct {
	*client.Client
	address string
	hello   wire.Hello
	lender  lend.Lender

	mu     sync.Mutex
	links  []*link.Link // guarded by mu: every one ever opened: values may be mapped in each
	closed bool         // guarded by mu: links are being closed
}

// Address is the node's socket.
func (d *Driver) Address() string { return d.address }

// Dial joins a node that is running on this machine: the one that Resolve finds.
func Dial(ctx context.Context, address string, cfg DialConfig) (*Driver, error) {
	address = Resolve(address, os.Getenv)
	if cfg.Logger == nil {
		cfg.Logger = slog.Default()
	}
	d := &Driver{address: address}
	d.hello = wire.Hello{Role: wire.RoleDriver, Straight: true, Namespace: cfg.Namespace, Functions: registry.List(), Others: cfg.Others, Environ: wire.PackEnviron(os.Environ())}
	l, err := link.Dial(ctx, address, d.hello)
	if err != nil {
		return nil, err
	}
	d.links = []*link.Link{l}
	d.hello.Job, d.hello.Client, d.hello.Token = l.Welcome.Job, l.Welcome.Client, l.Welcome.Token
	var boxes *shell.Mailboxes // without actors: a driver has none
	if l.Welcome.Straight {
		boxes = new(shell.Mailboxes)
	}
	d.Client = client.New(client.Config{
		Mailboxes: boxes, Apart: true, Port: port{l}, Welcome: l.Welcome, Memory: l.Memory, Log: cfg.Logger, Sample: sampler(l.Welcome, cfg.Logger), Reconnect: d.rejoin,
		WarnAfter: cfg.WarnAfter, Lender: &d.lender,
		Explain: state.Explainer(func(ctx context.Context, method string, body []byte) ([]byte, error) {
			return d.Request(ctx, method, body)
		}),
	})
	go d.read(l)
	return d, nil
}

// port is a connection as the client sees it.
type port struct{ l *link.Link }

func (p port) Send(msgs ...wire.Msg) error { return p.l.Conn.Send(msgs...) }
func (p port) Close() error                { return p.l.Leave() }

// read serves one connection to its end.
func (d *Driver) read(l *link.Link) {
	err := l.Conn.Serve(&d.lender, func(batch []wire.Msg) error { d.Deliver(batch); return nil })
	if err == io.EOF {
		err = errs.New(errs.CodeDisconnected, "node %s closed the connection", l.Welcome.Node)
	}
	d.Disconnected(port{l}, err)
}

// rejoin looks for the node again, under the same job.
func (d *Driver) rejoin(ctx context.Context, cause error) (client.Session, error) {
	if ctx.Err() != nil {
		return client.Session{}, cause
	}
	ctx, cancel := context.WithTimeout(ctx, rejoinTimeout)
	defer cancel()
	for pause := 20 * time.Millisecond; ; pause = min(2*pause, time.Second) {
		l, err := link.Dial(ctx, d.address, d.hello)
		if err == nil {
			if !d.keep(l) {
				return client.Session{}, errors.Join(cause, l.Close())
			}
			return client.Session{Port: port{l}, Welcome: l.Welcome, Memory: l.Memory, Serve: func() { d.read(l) }}, nil
		}
		if final(err) {
			return client.Session{}, err
		}
		if _, gone := os.Stat(filepath.Dir(d.address)); errors.Is(gone, fs.ErrNotExist) { // and what it knew of the job
			return client.Session{}, fmt.Errorf("node at %s: its directory is gone: %w", d.address, cause)
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return client.Session{}, fmt.Errorf("node at %s: not back after %v: %w: %w", d.address, rejoinTimeout, err, cause)
		}
	}
}

// final tells an answer of the node from its absence.
func final(err error) bool {
	e, ok := err.(*errs.Error)
	return ok && e.Code != errs.CodeNoNode && e.Code != errs.CodeDisconnected && e.Code != errs.CodeShutdown
}

// keep notes a link for Close, unless that has begun.
func (d *Driver) keep(l *link.Link) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.closed {
		d.links = append(d.links, l)
	}
	return !d.closed
}

// Close leaves the node: the job ends, and views of its objects with it.
func (d *Driver) Close(ctx context.Context) error {
	err := d.Client.Close(ctx)
	d.mu.Lock()
	links := d.links
	d.links, d.closed = nil, true
	d.mu.Unlock()
	for _, l := range links {
		if e := l.Close(); err == nil {
			err = e
		}
	}
	return err
}
