package shell

import (
	"context"
	"fmt"
	"net"
	"sync"

	"mobula/internal/ids"
)

// Pipes is a network in memory, between nodes of one process.
type Pipes struct {
	mu    sync.Mutex
	nodes map[ids.Home]*pipeEnd // guarded by mu
}

// pipeEnd is what one node has of it.
type pipeEnd struct {
	pipes  *Pipes
	home   ids.Home
	in     chan pipe
	once   sync.Once
	closed chan struct{}
}

// pipe is a connection that another node has made.
type pipe struct {
	net.Conn
	from ids.Home
}

// NewPipes makes a network without nodes.
func NewPipes() *Pipes { return &Pipes{nodes: make(map[ids.Home]*pipeEnd)} }

// Node adds a node, which can be dialed until its Transport is closed.
func (p *Pipes) Node(home ids.Home) Transport {
	e := &pipeEnd{pipes: p, home: home, in: make(chan pipe), closed: make(chan struct{})}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.nodes[home] = e
	return e
}

func (e *pipeEnd) Dial(ctx context.Context, to ids.Home) (net.Conn, error) {
	e.pipes.mu.Lock()
	other := e.pipes.nodes[to]
	e.pipes.mu.Unlock()
	if other == nil {
		return nil, fmt.Errorf("node %v is not in the network", to)
	}
	here, there := net.Pipe()
	select {
	case other.in <- pipe{there, e.home}:
		return here, nil
	case <-other.closed:
		return nil, fmt.Errorf("node %v: %w", to, net.ErrClosed)
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

func (e *pipeEnd) Accept() (net.Conn, ids.Home, error) {
	select {
	case p := <-e.in:
		return p.Conn, p.from, nil
	case <-e.closed:
		return nil, 0, net.ErrClosed
	}
}

func (e *pipeEnd) Close() error {
	e.once.Do(func() { close(e.closed) })
	return nil
}
