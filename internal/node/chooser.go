package node

import (
	"math/rand/v2"
	"slices"
	"time"

	"mobula/actors"
	"mobula/internal/ids"
	"mobula/raylet"
	"mobula/raylet/cluster"
	"mobula/raylet/internode"
	"mobula/raylet/owner"
	"mobula/raylet/sched"
)

// How often a node looks whether it has something to tell the others: at most while its scheduler has events, and at least.
const (
	reportEvery = 100 * time.Millisecond
	lookEvery   = time.Second // at its store, and for whom nothing was told lately
)

// start adds the core that chooses nodes to the tree, if the node is of a cluster.
func (c *chooser) start() (err error) {
	if c.links.alone() {
		return nil
	}
	self := c.numbers.Row().Home
	c.news, c.reporter = make(chan struct{}, 1), cluster.NewReporter(self, c.cfg.labels(self), c.numbers.Epoch()<<epochShift)
	c.ref, err = actors.Spawn(c.raylet.sup, actors.Spec[cluster.Event, cluster.Effect]{
		Kind: "cluster", Name: "cluster",
		New:    c.build,
		Do:     c.do,
		Vital:  cluster.Vital,
		Policy: actors.Policy{MaxRestarts: 20, Window: 10 * time.Second},
	})
	return err
}

func (c *chooser) build(start actors.Start) (actors.Core[cluster.Event, cluster.Effect], []cluster.Event, error) {
	cfg := cluster.CoreConfig{Config: cluster.DefaultConfig(), Self: c.numbers.Row().Home, Random: rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64())), WaitForNodes: c.cfg.WaitForNodes,
		NameOf: c.links.nameOf}
	core, err := cluster.New(cfg)
	if err != nil || start.Restart == 0 {
		return core, nil, err
	}
	ev := cluster.Restored{Epoch: c.numbers.newEpoch(), Nodes: c.links.others()}
	for _, o := range c.owners.all() {
		ev.Jobs = append(ev.Jobs, o.job)
	}
	slices.Sort(ev.Jobs)
	return core, append([]cluster.Event{ev}, c.known.reports()...), nil
}

func (c *chooser) do(self *actors.Ref[cluster.Event], e cluster.Effect) {
	switch e := e.(type) {
	case cluster.ToScheduler:
		if e.Node == c.numbers.Row().Home {
			c.raylet.ref.Deliver(e.Event)
			return
		}
		c.links.say(e.Node, &internode.ToSched{Job: e.Job, Msg: e.Event})
	case cluster.ToOwner:
		c.owners.post(e.Job, owner.FromSched{Msg: e.Msg})
	case cluster.OpenJob:
		c.links.openAt(e.Node, e.Job)
	case cluster.CloseJob:
		c.links.closeAt(e.Node, e.Job)
	case cluster.Opened:
		c.owners.post(e.Job, owner.JobOpened{Node: e.Node})
	case cluster.After:
		self.After(e.D, cluster.Timer{})
	}
}

// deliver steps an event, if the node is of a cluster.
func (c *chooser) deliver(ev cluster.Event) {
	if c.ref == nil {
		return
	}
	c.known.note(ev)
	if c.tells.note(ev) {
		c.wake()
	}
	c.ref.Deliver(ev)
}

// report tells the core, and other nodes, what this one has free, until the node ends.
func (c *chooser) report() {
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	held := cluster.Store{Limit: c.cfg.StoreBytes}
	var load sched.Load // of the raylet's goroutine
	for {
		now, known := c.store.load()
		if known {
			held = now
		} else {
			c.wake() // it is busy
		}
		held, busy := held, c.links.worksWith()
		c.raylet.ref.Deliver(raylet.Inspect{Do: func(core *raylet.Core) {
			core.Load(&load)
			n := c.reporter.Report(&load, cluster.Alive, held, c.owners.any())
			for _, node := range c.tells.next(c.reporter, n, c.clock.Now(), c.cfg.Cluster.Others(), busy) {
				if node == n.ID {
					c.deliver(cluster.NodeReport{Node: n.Clone()})
				} else {
					c.links.say(node, &internode.Report{Node: n.Clone()})
				}
			}
		}})
		looked := time.Now()
		select {
		case <-c.life.Done():
			return
		case <-c.news:
		case <-look.C:
		}
		if early := reportEvery - time.Since(looked); early > 0 {
			select {
			case <-c.life.Done():
				return
			case <-time.After(early):
			}
		}
	}
}

// wake has report look soon.
func (c *chooser) wake() {
	select {
	case c.news <- struct{}{}:
	default:
	}
}

// greet has a node be told what this one has free, though that may be no news: it lives again, or has given up what it had here.
func (c *chooser) greet(node ids.Home) {
	c.raylet.ref.Deliver(raylet.Inspect{Do: func(*raylet.Core) { c.reporter.Forget(node) }})
	c.wake()
}

// waking is the scheduler's core, whose every event may change what the node has free.
type waking struct {
	*raylet.Core
	wake func()
}

// Step implements actors.Core.
func (w waking) Step(now int64, ev raylet.Event) []raylet.Effect {
	if _, looks := ev.(raylet.Inspect); !looks {
		w.wake()
	}
	return w.Core.Step(now, ev)
}
