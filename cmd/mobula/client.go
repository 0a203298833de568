package main

import (
	"context"
	"errors"
	"io"
	"os"

	"github.com/fxamacker/cbor/v2"

	"mobula/internal/errs"
	"mobula/internal/node"
	"mobula/internal/steady"
	"mobula/wire"
	wireconn "mobula/wire/conn"
)

// conn is a connection of this command, for one request after another.
type conn struct {
	c    *wireconn.Conn
	req  uint64
	stop func() bool
}

// target is the socket of the node to ask.
func (a *app) target() string { return node.Resolve(a.address, a.getenv) }

// dial connects to the node.
func (a *app) dial(ctx context.Context) (*conn, error) { return a.dialAt(ctx, a.target()) }

// dialAt connects to the node at a socket.
func (a *app) dialAt(ctx context.Context, at string) (*conn, error) {
	c, w, f, err := wireconn.Dial(ctx, at, wire.Hello{Role: wire.RoleTool, PID: int32(os.Getpid())}, wireconn.Config{})
	if err != nil {
		return nil, err
	}
	a.clock = steady.Of(w.Clock)
	if f != nil {
		_ = f.Close() // this command reads no object
	}
	// The end of ctx makes a read that waits for an answer fail.
	return &conn{c: c, stop: context.AfterFunc(ctx, func() { c.Fail(context.Cause(ctx)) })}, nil
}

func (c *conn) close() {
	c.stop()
	_ = c.c.Close() // everything was answered, or no longer matters
}

// ask makes one request.
func (c *conn) ask(ctx context.Context, method string, in, out any) error {
	body, err := cbor.Marshal(in)
	if err != nil {
		return errs.New(errs.CodeNotEncodable, "%s: %v", method, err)
	}
	c.req++
	if err := c.c.Send(&wire.Request{Req: c.req, Method: method, Body: body}); err != nil {
		return err
	}
	for {
		batch, err := c.c.Recv()
		if err != nil {
			if ctx.Err() != nil {
				return errs.New(errs.CodeDeadline, "%s: the node did not answer in time: %v", method, context.Cause(ctx))
			}
			if errors.Is(err, io.EOF) {
				return errs.New(errs.CodeDisconnected, "%s: the node closed the connection", method)
			}
			return err
		}
		for _, m := range batch {
			switch m := m.(type) {
			case *wire.Reply:
				if m.Req != c.req {
					continue
				}
				if m.Err != nil {
					return m.Err
				}
				if err := cbor.Unmarshal(m.Body, out); err != nil {
					return errs.New(errs.CodeProtocol, "%s: the node's answer: %v; use a mobula of the node's version", method, err)
				}
				return nil
			case *wire.Bye:
				return m.Err
			}
		}
	}
}

// request connects, makes one request and disconnects.
func request[Out any](a *app, method string, in any) (out Out, err error) {
	return requestOf[Out](a, a.target(), method, in)
}

// requestOf makes one request to a node at a socket.
func requestOf[Out any](a *app, at, method string, in any) (out Out, err error) {
	ctx, cancel := context.WithTimeout(a.ctx, a.timeout)
	defer cancel()
	c, err := a.dialAt(ctx, at)
	if err != nil {
		return out, err
	}
	defer c.close()
	return out, c.ask(ctx, method, in, &out)
}
