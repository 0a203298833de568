package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"time"

	"mobula"
)

// gates are tasks that hold their slots until they are opened.
type gates struct {
	dir   string
	l     *net.UnixListener
	conns []net.Conn
	refs  []mobula.Ref[int]
}

// closeGates starts n gate tasks and waits until all of them run.
func closeGates(ctx context.Context, n int, opts ...mobula.TaskOption) (_ *gates, err error) {
	g := &gates{}
	defer func() {
		if err != nil {
			g.remove()
		}
	}()
	if g.dir, err = os.MkdirTemp("", "mobench-"); err != nil { // short: a socket's path has 108 bytes
		return nil, fmt.Errorf("gate: %w", err)
	}
	address := filepath.Join(g.dir, "gate")
	if g.l, err = net.ListenUnix("unix", &net.UnixAddr{Name: address, Net: "unix"}); err != nil {
		return nil, fmt.Errorf("gate: %w", err)
	}
	for range n {
		g.refs = append(g.refs, gate.Go(ctx, mobula.V(address), opts...))
	}
	stop := context.AfterFunc(ctx, func() { _ = g.l.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	for range n {
		c, err := g.l.Accept()
		if err != nil {
			return nil, errors.Join(fmt.Errorf("gate: %d of %d tasks run: %w", len(g.conns), n, err), context.Cause(ctx))
		}
		g.conns = append(g.conns, c)
	}
	return g, nil
}

// open lets the tasks go on and waits for their end.
func (g *gates) open(ctx context.Context) error {
	defer g.remove()
	for _, c := range g.conns {
		if _, err := c.Write([]byte{1}); err != nil {
			return fmt.Errorf("gate: %w", err)
		}
	}
	_, err := mobula.GetAll(ctx, g.refs)
	return err
}

// remove also ends tasks that still wait: their connection closes.
func (g *gates) remove() {
	for _, c := range g.conns {
		_ = c.Close()
	}
	if g.l != nil {
		_ = g.l.Close()
	}
	if g.dir != "" {
		_ = os.RemoveAll(g.dir)
	}
}
