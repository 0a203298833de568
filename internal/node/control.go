package node

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"mobula/gcs"
	gcsshell "mobula/gcs/shell"
	"mobula/internal/errs"
	"mobula/internal/home"
	"mobula/internal/node/inspect"
	"mobula/internal/release"
	"mobula/internal/state"
	"mobula/internal/trust"
)

// elsewhere tells whether the control plane is not the node's own.
func (c *control) elsewhere() bool { return len(c.cfg.GCS) > 0 }

// join joins a control plane that is elsewhere. A node of a cluster on a network does so once it is let in.
func (c *control) join() error {
	if !c.elsewhere() || c.wired.on() {
		return nil
	}
	c.once.Do(func() {
		c.kept = true
		c.begun.Store(true)
		c.g, c.err = gcsshell.Start(c.sys, gcsshell.Config{Servers: c.cfg.GCS, Node: c.cfg.Name, Logger: c.cfg.Logger})
		close(c.ready)
	})
	return c.err
}

// connect joins the control plane of the node's cluster, which is let in: as one of its servers, or as a client of these. epoch is that of the node's life, 0: it has not begun.
func (c *control) connect(epoch uint64) error {
	c.once.Do(func() {
		c.kept = true
		c.begun.Store(true)
		c.g, c.err = gcsshell.Start(c.sys, c.wired.gcs(epoch))
		close(c.ready)
	})
	return c.err
}

// prepare is for an embedded one, which starts where an earlier life has left its tables.
func (c *control) prepare() error {
	if c.elsewhere() || c.wired.on() {
		return nil
	}
	if c.cfg.NoGCS {
		c.end(errs.New(errs.CodeInvalid, "the node runs without a control plane"))
		return nil
	}
	if _, err := os.Lstat(c.tables()); err == nil {
		c.kept = true
		c.begin()
	}
	return nil
}

// announce has the others see the node, which is up. In a cluster its row is in the tables before it speaks to other nodes: so the judge knows every life
// that they know.
func (c *control) announce(ctx context.Context) error {
	switch {
	case c.wired.on():
		if _, err := c.askWait(ctx, gcs.Put{Record: c.self()}); err != nil {
			return err
		}
		c.g.Announce(c.self(), clusterBeat)
	case c.elsewhere():
		c.g.Announce(c.self(), c.cfg.Beat)
	}
	return nil
}

// clusterBeat is how often a node of a cluster writes its row: the rule by which a silent one is declared dead counts on it (membership.DefaultJudgeConfig).
const clusterBeat = time.Second

// tables is where an embedded one has them.
func (c *control) tables() string { return filepath.Join(c.dir, "gcs") }

// begin starts an embedded one, if nobody has.
func (c *control) begin() {
	c.once.Do(func() {
		c.begun.Store(true)
		go func() {
			defer close(c.ready)
			c.g, c.err = gcsshell.Start(c.sys, gcsshell.Config{Dir: c.tables(), Node: c.cfg.Name, Logger: c.cfg.Logger})
			if c.err != nil {
				c.cfg.Logger.Error("the control plane did not start; named actors cannot be used", "err", c.err)
				return
			}
			c.g.Announce(c.self(), 0)                                                                            // nobody else reads its table
			c.g.Ask(gcs.Put{Record: gcs.HomeRecord{Row: c.numbers.Row(), Node: c.cfg.Name}}, func(gcs.Reply) {}) // it is its own control plane: the row is its word
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
	c.end(errs.New(errs.CodeShutdown, "node %s is stopping", c.cfg.Name))
	<-c.ready
}

// ask asks the control plane; done is called once, maybe on this goroutine.
func (c *control) ask(op gcs.Op, done func(gcs.Reply)) {
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
		c.work.Go(func() {
			<-c.ready
			put()
		})
	}
}

// askWait is ask for those who can wait.
func (c *control) askWait(ctx context.Context, op gcs.Op) ([]gcs.Record, error) {
	answer := make(chan gcs.Reply, 1)
	c.ask(op, func(r gcs.Reply) { answer <- r })
	select {
	case r := <-answer:
		return r.Records, r.Err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// nodes are the rows of all nodes.
func (c *control) nodes(ctx context.Context) (out []gcs.NodeRecord, err error) {
	records, err := c.askWait(ctx, gcs.List{Bucket: gcs.Nodes})
	for _, r := range records {
		if n, ok := r.(gcs.NodeRecord); ok {
			out = append(out, n)
		}
	}
	return out, err
}

// register is who gives the node its home.
func (n *Node) register() home.Register {
	if n.wired.on() {
		return &n.wired
	}
	return n.control.register()
}

// register is who gives a node its home that is of no cluster on a network.
func (c *control) register() home.Register {
	if c.cfg.Cluster != nil && c.cfg.Cluster.Register != nil {
		return c.cfg.Cluster.Register
	}
	if c.elsewhere() {
		return gcsshell.Register{GCS: c.g, Node: c.cfg.Name}
	}
	return home.Own{}
}

// self is what the node says of itself in the table of nodes.
func (c *control) self() gcs.NodeRecord {
	total := make(map[string]float64)
	for _, r := range c.cfg.resources() {
		total[r.Name] = inspect.Units(r)
	}
	r := gcs.NodeRecord{
		Home: c.numbers.Row().Home, Name: c.cfg.Name, Epoch: c.numbers.Epoch(), Address: c.Address(), PID: os.Getpid(), Started: c.since,
		Resources: total, Labels: c.cfg.labels(c.numbers.Row().Home), Version: release.Build(),
	}
	if c.wired.on() {
		r.Role, r.Identity, r.Addresses = string(c.wired.member.Role()), c.identity, c.wired.at.all()
	}
	return r
}

// state says how the control plane is.
func (c *control) state() string {
	if c.cfg.NoGCS {
		return "off"
	}
	select {
	case <-c.ready:
		if c.err != nil {
			return c.err.Error()
		}
		if c.away() {
			return "away: no server of it answers"
		}
		if why := c.unled(); why != "" {
			return why
		}
		return "up"
	default:
		if !c.begun.Load() {
			return "asleep"
		}
		return "starting"
	}
}

// away tells whether the tables are elsewhere and cannot be read there now: what is known of them is as last heard.
func (c *control) away() bool {
	select {
	case <-c.ready:
		return c.err == nil && (c.elsewhere() || c.wired.on() && !c.wired.serves()) && !c.g.Connected()
	default:
		return false
	}
}

// unled says that too few of the cluster's control-plane servers answer, on one of them; empty: that is not so.
func (c *control) unled() string {
	r, known := c.g.Reached()
	if !known || !r.Lost() {
		return ""
	}
	reached := 1 + len(r.Others)
	silent := c.wired.silentServers(r.Others, r.Size-reached)
	if more := r.Size - reached - len(silent); more > 0 {
		silent = append(silent, fmt.Sprintf("%d that this node does not know", more))
	}
	return fmt.Sprintf("no majority: %d of %d control-plane servers answer, %d must: start the others again: %s", reached, r.Size, r.Needed, strings.Join(silent, ", "))
}

// carriers names who carries the tables: NATS servers elsewhere, or the control-plane servers among other nodes.
func (c *control) carriers(others []gcs.NodeRecord) (names []string) {
	if c.elsewhere() {
		return []string{gcsshell.Redacted(c.cfg.GCS)}
	}
	for _, r := range others {
		if r.Role == string(trust.ControlPlane) && !r.Dead {
			names = append(names, r.Name)
		}
	}
	return names
}

// copies is how many copies of each table are in step, on a control-plane server that is up.
func (c *control) copies() int {
	select {
	case <-c.ready:
		if c.err == nil && c.g != nil {
			return c.g.Copies()
		}
	default:
	}
	return 0
}

// named gives what the control plane has under an actor's name.
func (c *control) named(ctx context.Context, r state.ActorRequest) (rec gcs.ActorRecord, err error) {
	if r.Namespace == "" {
		r.Namespace = c.cfg.Namespace
	}
	records, err := c.askWait(ctx, gcs.Lookup{Bucket: gcs.Actors, Key: gcs.ActorKey(r.Namespace, r.Name)})
	found, ok := firstActor(records)
	switch {
	case err != nil && errs.From(err).Code == errs.CodeNotFound, err == nil && !ok:
		return rec, errs.New(errs.CodeNotFound, "no actor is named %q in namespace %q", r.Name, r.Namespace)
	case err != nil:
		return rec, err
	}
	return found, nil
}
