package worker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"runtime/debug"
	"time"

	"mobula/internal/client"
	"mobula/internal/direct/shell"
	"mobula/internal/errs"
	inject "mobula/internal/fault"
	"mobula/internal/link"
	"mobula/internal/registry"
	"mobula/internal/state"
	"mobula/objectstore/segment"
	"mobula/wire"
	"mobula/wire/conn"
)

// leaveGrace bounds how long a worker goes on after its node has gone; the contexts of tasks end. A worker with actors has closeGrace
// more to close them, if the node said goodbye.
const leaveGrace, closeGrace = 2 * time.Second, 5 * time.Second

// Option changes how Main works.
type Option func(*Config)

// Main is a worker process: it registers with the node, runs what it is given, and
// returns when the node has drained it (nil), when ctx ends (nil) or when the node is gone or going (ErrDisconnected,
// with the node's reason if there is one). The caller then ends the process, even if something still runs
// in it. Main removes the worker's variables from the environment, and installs no signal handler.
func Main(ctx context.Context, env Env, opts ...Option) error {
	forget()
	if env.Memory > 0 && debug.SetMemoryLimit(-1) == math.MaxInt64 {
		debug.SetMemoryLimit(env.Memory)
	}
	faults, err := follow(env.Chaos)
	if err != nil {
		return err
	}
	l, err := link.Dial(ctx, env.Socket, wire.Hello{Role: wire.RoleWorker, Straight: true, Job: env.Job, Token: env.Token, Functions: registry.List()})
	if err != nil {
		return nodeGone(err)
	}
	if l.Memory == nil {
		return errors.Join(errs.New(errs.CodeProtocol, "the node sent no segment with its welcome"), l.Conn.Close())
	}
	quiet, err := serve(ctx, l.Conn, l.Welcome, l.Memory, faults, opts)
	if !quiet { // a task that ignores its context may still read; the end of the process unmaps
		return err
	}
	return errors.Join(err, l.Memory.Close())
}

// serve works until the end; quiet tells that no user code runs any more.
func serve(ctx context.Context, conn *conn.Conn, w *wire.Welcome, mapping *segment.Mapping, faults *inject.Injector, opts []Option) (quiet bool, err error) {
	var e *Executor
	cc := client.Config{Port: conn, Welcome: w, Memory: mapping, Log: slog.Default(),
		Holdings: func(h *wire.Holdings) { e.Holdings(h) }, Waits: func() { e.reader.handOver() }}
	if w.Straight {
		cc.Mailboxes, cc.Apart = new(shell.Mailboxes), true
	}
	var c *client.Client
	cc.Explain = state.Explainer(func(ctx context.Context, method string, body []byte) ([]byte, error) {
		return c.Request(ctx, method, body)
	})
	c = client.New(cc)
	cfg := Config{Client: c, Memory: mapping, Faults: faults, Mailboxes: cc.Mailboxes}
	for _, o := range opts {
		o(&cfg)
	}
	e = New(cfg)
	e.reader = newReader(e, conn.Recv)
	go e.reader.loop()
	ended := false
	select {
	case <-e.reader.over:
		ended = true
		if err = e.reader.err; err == nil {
			err = errs.New(errs.CodeDisconnected, "the node closed the connection")
		}
		c.Disconnected(conn, err)
		e.nodeGone(e.reader.over)
	case <-c.Done(): // the node said goodbye, or nothing can be sent any more
		err = c.Err()
		e.nodeGone(e.reader.over)
	case <-e.Drained():
	case <-ctx.Done():
	}
	grace := leaveGrace
	if e.closes() {
		grace += closeGrace
	}
	err = nodeGone(err)
	short, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
	defer cancel()
	stuck := e.Close(short)
	err = errors.Join(err, c.Close(short))
	if !ended {
		<-e.reader.over // the connection is closed
	}
	if stuck != nil {
		return false, errors.Join(err, errs.New(errs.CodeShutdown, "tasks still ran %v after their context had ended", grace))
	}
	return true, err
}

// nodeGone adds ErrDisconnected to an error that says that the node is gone, or going: the caller need not report it, the node's log does.
func nodeGone(err error) error {
	if errors.Is(err, errs.ErrNoNode) || errors.Is(err, errs.ErrShutdown) {
		return fmt.Errorf("%w: %w", errs.ErrDisconnected, err)
	}
	return err
}
