package mobulatest

import (
	"context"
	"errors"
	"net/netip"
	"os"
	"time"

	"mobula/internal/node"
)

// settleTimeout bounds how long a cluster may take to note what was done to it. The end of a life takes 5 to 9 s, and a connection that was cut sends again after as
// long as it was.
const settleTimeout = 60 * time.Second

// Kill ends a node as the loss of its machine would: its workers are killed, and the others hear nothing of it. They find that nobody is there at once, and are
// sure of it after some seconds: Settle waits for that. Drivers that are connected to the node get mobula.ErrOwnerDied.
func (c *Nodes) Kill(i int) {
	c.t.Helper()
	c.end(i, c.node(i), (*node.Node).Kill)
}

// Stop stops a node in order. Drivers that are connected to it get mobula.ErrOwnerDied.
func (c *Nodes) Stop(i int) {
	c.t.Helper()
	c.end(i, c.node(i), (*node.Node).Close)
}

// Restart starts a node again that was killed or stopped: with its directory, so that it has the same id, at the same address, and begins a new life. One that
// runs is killed first. When Restart returns, each node has heard from it. A node that is cut off cannot come back: Heal first.
func (c *Nodes) Restart(i int) {
	c.t.Helper()
	c.Kill(i) // or it is gone
	ctx, cancel := context.WithTimeout(c.t.Context(), nodeStartTimeout)
	defer cancel()
	if err := c.restart(ctx, i); err != nil {
		c.t.Fatalf("mobulatest: node %d was not started again: %v", i, err)
	}
	c.await(ctx, false)
}

func (c *Nodes) restart(ctx context.Context, i int) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	defer c.cutLocked()
	if err := os.Rename(c.dirOf(i)+asideSuffix, c.dirOf(i)); err != nil {
		return err
	}
	return c.startLocked(ctx, i, c.all[i])
}

// asideSuffix is at the end of the name of a node's directory while the node is gone.
const asideSuffix = ".gone"

// end ends a node's life, unless it is over or somebody else ends it, and waits for that.
func (c *Nodes) end(i int, n *node.Node, how func(*node.Node, context.Context) error) {
	c.t.Helper()
	c.mu.Lock()
	m := c.all[i]
	present, first, ended := m.node == n, m.node == n && !m.gone, m.ended
	if first {
		m.gone = true
	}
	c.mu.Unlock()
	if present && !first {
		<-ended
	}
	if !first {
		return
	}
	defer close(ended)
	ctx, cancel := c.closing()
	defer cancel()
	if err := errors.Join(how(n, ctx), os.Rename(c.dirOf(i), c.dirOf(i)+asideSuffix)); err != nil {
		c.t.Errorf("mobulatest: end of node %d: %v", i, err)
	}
}

// Cut has the network lose all that two nodes send each other, as a broken switch would: messages, objects, gossip and what they ask the tables. Neither is told. Other
// nodes reach both. A node that is cut off from the first one, which has the tables, is dead after 5 to 9 s, for all others; it finds that when the network is
// mended, and ends. A shorter cut costs nothing but time.
func (c *Nodes) Cut(a, b int) {
	c.t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	if a == b {
		c.t.Fatalf("mobulatest: node %d cannot be cut off from itself", a)
	}
	c.memberLocked(a).cutOff[b], c.memberLocked(b).cutOff[a] = true, true
	c.cutLocked()
}

// Isolate cuts a node off from all others, as Cut does, and from those that are added.
func (c *Nodes) Isolate(i int) {
	c.t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.memberLocked(i).alone = true
	c.cutLocked()
}

// Heal mends the network: no node is cut off any more. What was sent meanwhile arrives, unless whoever sent it has given up.
func (c *Nodes) Heal() {
	c.t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, m := range c.all {
		m.alone = false
		clear(m.cutOff)
	}
	c.cutLocked()
}

// cutLocked has the system cut off what is cut off. c.mu is held.
func (c *Nodes) cutLocked() {
	c.t.Helper()
	for i, m := range c.all {
		var from []netip.Addr
		for j, o := range c.all {
			if c.apartLocked(i, j) {
				from = append(from, o.host.Addr())
			}
		}
		if err := m.host.Refuse(from); err != nil {
			c.t.Fatalf("mobulatest: %v", err)
		}
	}
}

// apartLocked tells whether two nodes are cut off from one another. c.mu is held.
func (c *Nodes) apartLocked(i, j int) bool {
	return i != j && (c.all[i].alone || c.all[j].alone || c.all[i].cutOff[j])
}

// Settle waits until the nodes agree on what has become of them, after Kill, Stop, Restart, Cut, Isolate or Heal: each node that runs takes each other one for alive, in
// its present life, and is answered by it; and those that were killed or stopped, or have ended, are dead. Nodes that are cut off from the first one are dead for those
// that are not, and are not asked themselves; of others that are cut off from one another nothing is awaited. While the first node is gone no life is ended, and only
// those that run are awaited. The test fails if that takes a minute.
func (c *Nodes) Settle() {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), settleTimeout)
	defer cancel()
	c.await(ctx, true)
}

// await waits until the nodes agree on who runs, and on who is gone if that matters.
func (c *Nodes) await(ctx context.Context, gone bool) {
	c.t.Helper()
	for {
		err := c.disagree(ctx, gone)
		if err == nil {
			return
		}
		if ctx.Err() != nil {
			c.t.Fatalf("mobulatest: the nodes do not agree after %v: %v", settleTimeout, err)
		}
		pause(ctx)
	}
}

// disagree says on what the nodes do not agree yet.
func (c *Nodes) disagree(ctx context.Context, gone bool) error {
	for i := range c.Len() {
		n, up, over := c.wanted(i)
		if n == nil {
			continue
		}
		if !gone {
			over = nil
		}
		if err := n.Agrees(ctx, up, over); err != nil {
			return err
		}
	}
	return nil
}

// wanted is what a node is to say of the others: who is up, and who is over; nil: it is not asked.
func (c *Nodes) wanted(i int) (n *node.Node, up, over []*node.Node) {
	c.mu.Lock()
	defer c.mu.Unlock()
	m := c.all[i]
	if m.gone || c.apartLocked(0, i) {
		return nil, nil, nil
	}
	for j, o := range c.all {
		switch {
		case o.gone || c.apartLocked(0, j):
			if !c.all[0].gone {
				over = append(over, o.node)
			}
		case !c.apartLocked(i, j):
			up = append(up, o.node)
		}
	}
	return m.node, up, over
}
