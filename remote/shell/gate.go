package shell

import (
	"context"
	"fmt"
	"sync"

	"mobula/internal/errs"
	"mobula/internal/ids"
)

// overhead is what a message costs besides its bytes.
const overhead = 64

// gate lets messages for one other node in. It counts them until they are acknowledged, dropped or refused, those that the core has not stepped yet
// among them, so that the core never refuses one for their bytes.
type gate struct {
	home  ids.Home
	limit int64

	mu     sync.Mutex
	bytes  int64         // guarded by mu, as all below: of the messages that were let in
	full   bool          // the core asks senders to wait
	room   chan struct{} // closed when senders are to look again; nil: nobody waits
	closed error         // why nothing is let in any more
	up     bool          // a connection is in use
	last   error         // if not: why the last one failed, for the errors of those who waited
}

// enter lets a message in, and waits until it may. With an error it was not let in.
func (g *gate) enter(ctx context.Context, size int) error {
	n := int64(size + overhead)
	g.mu.Lock()
	defer g.mu.Unlock()
	for g.closed == nil && (g.full || !g.fits(n)) {
		if g.room == nil {
			g.room = make(chan struct{})
		}
		room := g.room
		g.mu.Unlock()
		select {
		case <-room:
			g.mu.Lock()
		case <-ctx.Done():
			g.mu.Lock()
			return g.waited(context.Cause(ctx))
		}
	}
	if g.closed == nil {
		g.bytes += n
	}
	return g.closed
}

// try is enter that never waits: what does not fit is refused, up to the limit and not up to where senders are asked to wait.
func (g *gate) try(size int) error {
	n := int64(size + overhead)
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case g.closed != nil:
		return g.closed
	case !g.fits(n):
		return errs.New(errs.CodeBacklog, "node %v: %d bytes wait for it, at most %d may", g.home, g.bytes, g.limit)
	}
	g.bytes += n
	return nil
}

// fits tells whether a message is within the limit; one that is larger goes alone. mu is held.
func (g *gate) fits(n int64) bool { return g.bytes == 0 || g.bytes+n <= g.limit }

// waited says what a sender has waited for in vain. mu is held.
func (g *gate) waited(cause error) error {
	if g.last != nil {
		return fmt.Errorf("node %v: %d bytes wait for it: %w; the last connection: %w", g.home, g.bytes, cause, g.last)
	}
	return fmt.Errorf("node %v: %d bytes wait for it: %w", g.home, g.bytes, cause)
}

// leave takes note of messages that are not there any more, and of what the core asks of senders.
func (g *gate) leave(messages, bytes int, full bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.bytes -= int64(bytes + messages*overhead)
	g.full = full
	if !full {
		g.wake()
	}
}

// give gives back the room of a message that was let in and did not reach the core.
func (g *gate) give(size int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.bytes -= int64(size + overhead)
	g.wake()
}

// state gives the bytes that were let in, whether a connection is in use, and if not why the last one failed.
func (g *gate) state() (bytes int64, up bool, last error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.bytes, g.up, g.last
}

// failed takes note of why a connection ended, unless another one is in use.
func (g *gate) failed(err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.up {
		g.last = err
	}
}

// connected takes note that a connection is in use, or why none is any more.
func (g *gate) connected(up bool, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.up, g.last = up, err
}

// close lets nothing in any more. The first reason counts.
func (g *gate) close(err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed == nil {
		g.closed = err
	}
	g.wake()
}

// wake has waiting senders look again. mu is held.
func (g *gate) wake() {
	if g.room != nil {
		close(g.room)
		g.room = nil
	}
}
