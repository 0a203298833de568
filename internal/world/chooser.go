package world

import (
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"mobula/internal/ids"
	"mobula/raylet/cluster"
	"mobula/raylet/internode"
	"mobula/raylet/owner"
	"mobula/raylet/sched"
)

// chooserShell is the shell of the core that chooses nodes, and what has the node report to the others.
type chooserShell struct {
	*part[cluster.Event, cluster.Effect]
	reporter *cluster.Reporter
	audience *cluster.Audience
	load     sched.Load
}

func (n *Node) startChooser() {
	c := &chooserShell{reporter: cluster.NewReporter(n.home, nil, n.numbers.lives<<32), audience: cluster.NewAudience()}
	n.chooser = c
	c.part = &part[cluster.Event, cluster.Effect]{vital: cluster.Vital, build: c.buildCore, do: c.carryOut}
	startPart(n, kindChooser, "cluster", c.part)
}

func (c *chooserShell) buildCore(restart int) (core[cluster.Event, cluster.Effect], []cluster.Event) {
	n := c.n
	cfg := cluster.CoreConfig{Config: cluster.DefaultConfig(), Self: n.home, Random: rand.New(rand.NewPCG(n.w.rng.Uint64(), 1))}
	core, err := cluster.New(cfg)
	if err != nil {
		n.w.fail("nobody chooses nodes: %v", err)
	}
	if restart == 0 {
		return core, nil
	}
	return core, []cluster.Event{cluster.Restored{Epoch: n.numbers.newEpoch(), Nodes: n.links.others(), Jobs: slices.Sorted(maps.Keys(n.owners))}}
}

func (c *chooserShell) carryOut(e cluster.Effect) {
	n := c.n
	switch e := e.(type) {
	case cluster.ToScheduler:
		if e.Node == n.home {
			n.raylet.box.put(e.Event)
			return
		}
		n.links.say(e.Node, &internode.ToSched{Job: e.Job, Msg: e.Event})
	case cluster.ToOwner:
		n.toOwner(e.Job, owner.FromSched{Msg: e.Msg})
	case cluster.OpenJob:
		n.links.openAt(e.Node, e.Job)
	case cluster.CloseJob:
		n.links.closeAt(e.Node, e.Job)
	case cluster.Opened:
		n.toOwner(e.Job, owner.JobOpened{Node: e.Node})
	case cluster.After:
		c.after(e.D, cluster.Timer{})
	default:
		n.w.fail("who chooses nodes asks for a %T, which nobody does", e)
	}
}

// reportEvery is how often a node looks whether it has something to tell the others.
const reportEvery = 100 * time.Millisecond

// report tells the core, and the other nodes, what this one has free, where that has changed. It goes on as long as the node lives.
func (c *chooserShell) report() {
	n, life := c.n, c.n.life
	n.raylet.core.Load(&c.load)
	st := n.store.core.Stats()
	r := c.reporter.Report(&c.load, cluster.Alive, cluster.Store{Limit: st.Limit, Held: st.Held}, len(n.owners) > 0)
	var others []ids.Home
	for _, o := range n.w.nodes {
		if o != n && n.believes(o) {
			others = append(others, o.home)
		}
	}
	due := c.reporter.Due(n.w.now, len(others), c.audience.Of(r, others), nil)
	c.audience.Told(r, due)
	for _, home := range due {
		if home == n.home {
			c.box.put(cluster.NodeReport{Node: r.Clone()})
			continue
		}
		n.links.say(home, &internode.Report{Node: r.Clone()})
	}
	n.w.each(reportEvery, func() {
		if n.life == life {
			c.report()
		}
	})
}
