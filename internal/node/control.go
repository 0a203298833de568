package node

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"

	"mobula/gcs"
	gcsshell "mobula/gcs/shell"
	"mobula/internal/errs"
	"mobula/internal/home"
	"mobula/internal/node/inspect"
	"mobula/internal/release"
)

// control is the control plane as the node uses it. An embedded one starts when it is first asked for something, or where an earlier life of
// the node has left its tables: its server has clocks of its own, and a node without named actors has no need of it. What is
// asked before it is up waits. One that is elsewhere is joined before anything else of the node starts: it says which home the node has.
type control struct {
	n     *Node
	kept  bool      // an earlier life may have left names in its tables; immutable
	once  sync.Once // of the start
	begun atomic.Bool
	ready chan struct{} // closed when g or err is set
	g     *gcsshell.GCS
	err   error
}

// joinControl joins a control plane that is elsewhere.
func joinControl(n *Node) (*control, error) {
	c := &control{n: n, kept: true, ready: make(chan struct{})}
	c.once.Do(func() {
		c.begun.Store(true)
		c.g, c.err = gcsshell.Start(n.sys, gcsshell.Config{Servers: n.cfg.GCS, Node: n.cfg.Name, Logger: n.cfg.Logger})
		close(c.ready)
	})
	return c, c.err
}

// startControl prepares an embedded one, and starts it where an earlier life has left its tables.
func startControl(n *Node) *control {
	c := &control{n: n, ready: make(chan struct{})}
	if n.cfg.NoGCS {
		c.end(errs.New(errs.CodeInvalid, "the node runs without a control plane"))
		return c
	}
	if _, err := os.Lstat(c.dir()); err == nil {
		c.kept = true
		c.begin()
	}
	return c
}

func (c *control) dir() string { return filepath.Join(c.n.dir, "gcs") }

// begin starts an embedded one, if nobody has.
func (c *control) begin() {
	c.once.Do(func() {
		c.begun.Store(true)
		go func() {
			defer close(c.ready)
			c.g, c.err = gcsshell.Start(c.n.sys, gcsshell.Config{Dir: c.dir(), Node: c.n.cfg.Name, Logger: c.n.cfg.Logger})
			if c.err != nil {
				c.n.cfg.Logger.Error("the control plane did not start; named actors cannot be used", "err", c.err)
				return
			}
			c.g.Announce(c.n.nodeRecord(), 0)                                                                     // nobody else reads its table
			c.g.Ask(gcs.Put{Record: gcs.HomeRecord{Row: c.n.home.Row(), Node: c.n.cfg.Name}}, func(gcs.Reply) {}) // it is its own control plane: the row is its word
		}()
	})
}

// end keeps it from being started.
func (c *control) end(err error) {
	c.once.Do(func() {
		c.err = err
		close(c.ready)
	})
}

// close waits for a start under way.
func (c *control) close() {
	if c != nil {
		c.end(errs.New(errs.CodeShutdown, "node %s is stopping", c.n.cfg.Name))
		<-c.ready
	}
}

// ask asks the control plane; done is called once, maybe on this goroutine.
func (n *Node) ask(op gcs.Op, done func(gcs.Reply)) {
	c := n.gcs
	put := func() {
		if c.err != nil {
			done(gcs.Reply{Err: c.err})
			return
		}
		c.g.Ask(op, done)
	}
	select {
	case <-c.ready:
		put()
	default:
		c.begin()
		n.work.Go(func() {
			<-c.ready
			put()
		})
	}
}

// askWait is ask for those who can wait.
func (n *Node) askWait(ctx context.Context, op gcs.Op) ([]gcs.Record, error) {
	answer := make(chan gcs.Reply, 1)
	n.ask(op, func(r gcs.Reply) { answer <- r })
	select {
	case r := <-answer:
		return r.Records, r.Err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// register is who gives the node its home.
func (n *Node) register() home.Register {
	if n.gcs != nil && n.gcs.g != nil {
		return gcsshell.Register{GCS: n.gcs.g, Node: n.cfg.Name}
	}
	return home.Own{}
}

// nodeRecord is what the node says of itself in the table of nodes.
func (n *Node) nodeRecord() gcs.NodeRecord {
	total := make(map[string]float64)
	for _, r := range n.resources() {
		total[r.Name] = inspect.Units(r)
	}
	return gcs.NodeRecord{
		Home: n.home.Row().Home, Name: n.cfg.Name, Epoch: n.home.Epoch(), Address: n.Address(), PID: os.Getpid(), Started: n.since,
		Resources: total, Version: release.Build(),
	}
}

// control says how the control plane is.
func (n *Node) control() string {
	switch {
	case n.cfg.NoGCS:
		return "off"
	case n.gcs == nil:
		return "starting"
	}
	select {
	case <-n.gcs.ready:
		if n.gcs.err != nil {
			return n.gcs.err.Error()
		}
		return "up"
	default:
		if !n.gcs.begun.Load() {
			return "asleep"
		}
		return "starting"
	}
}
