package node

import (
	"context"
	"errors"

	"mobula/wire"
)

// Kill ends the node as the loss of its machine would, for a test whose nodes share a process: other nodes are told nothing, and find that nobody is there.
// Workers are killed. Programs in this process are told, since they are not lost. Nothing is left but what a kept node keeps.
func (n *Node) Kill(ctx context.Context) error {
	n.once.Do(func() { n.err = n.close(ctx, n.vanish) })
	return n.err
}

// vanish ends without a word what other nodes have with this one.
func (n *Node) vanish(ctx context.Context) error {
	cut := n.wired.cut(ctx)
	n.sessions.sayBye(n.errStopping(), func(wire.Role) bool { return true })
	n.door.close()
	n.locals.closeAll(ctx)
	return errors.Join(cut, n.raylet.killProcesses(ctx))
}

// cut takes the node off the network: from now on nothing that it says is heard.
func (w *wired) cut(ctx context.Context) error {
	if !w.on() {
		return nil
	}
	w.control.g.Vanish()
	return errors.Join(w.port.Close(), w.links.hub.Close(ctx))
}
