package world

import (
	"maps"
	"slices"
	"time"

	"mobula/internal/ids"
	"mobula/remote"
	"mobula/remote/membership"
)

// court is how the control plane ends lives: nodes write heartbeats to the tables, a judge follows them, and what it finds is told to all nodes that reach
// the tables. A node that hears of its own end ends.
type court struct {
	w      *World
	judge  *membership.Judge
	beats  map[ids.Home]uint64
	beat   uint64              // of the judge
	lives  map[ids.Home]uint64 // the last life of which a row was written
	fenced map[ids.Home]uint64
}

func newCourt(w *World) *court {
	return &court{
		w: w, beats: make(map[ids.Home]uint64), lives: make(map[ids.Home]uint64), fenced: make(map[ids.Home]uint64),
		judge: membership.NewJudge(membership.DefaultJudgeConfig(), remote.Life{Epoch: 1}), // of a server that is none of the nodes
	}
}

// beatEvery is how often nodes write their rows, and the judge its own.
const beatEvery = time.Second

// sit has the judge hear itself for as long as the world lasts.
func (c *court) sit() {
	if c.w.hasQuorum() {
		c.beat++
		for _, l := range c.judge.Heard(c.w.now, remote.Life{Epoch: 1}, c.beat) {
			c.end(l)
		}
	}
	c.w.each(beatEvery, c.sit)
}

// hasQuorum tells whether the tables take and show rows.
func (w *World) hasQuorum() bool { return !w.cfg.NoTables && w.noQuorum <= w.now }

// end ends a life.
func (c *court) end(l remote.Life) {
	c.judge.Ended(l)
	c.fenced[l.Home] = max(c.fenced[l.Home], l.Epoch)
	n := c.w.node(l.Home)
	if l.Epoch == n.numbers.lives && n.mayLive {
		c.w.fail("%v is declared dead, and was never silent for long", l)
	}
	c.w.plan.verdicts++
	c.w.log.add(c.w, "VERDICT", l)
	c.w.model.nodeLost(n, l.Epoch == n.numbers.lives)
}

// attend has a node write its row, and read what the tables say, as long as it lives.
func (n *Node) attend() {
	c, life := n.w.court, n.life
	if n.w.hasQuorum() && n.lone <= n.w.now && n.stopped <= n.w.now {
		c.beats[n.home]++
		c.lives[n.home] = n.numbers.lives
		c.judge.Heard(n.w.now, n.self(), c.beats[n.home])
		n.readFences()
	}
	n.w.each(beatEvery, func() {
		if n.life == life {
			n.attend()
		}
	})
}

// readFences hears which lives are over that it did not know of.
func (n *Node) readFences() {
	c := n.w.court
	if c.fenced[n.home] >= n.numbers.lives {
		life := n.life
		n.w.after(0, func() {
			if n.life == life {
				n.kill()
			}
		})
		return
	}
	for _, home := range slices.Sorted(maps.Keys(c.fenced)) {
		if epoch := c.fenced[home]; home != n.home && epoch > n.fences[home] {
			n.fences[home] = epoch
			n.peer(home).post(remote.Fence{Epoch: epoch})
		}
	}
}

// believes tells whether a node takes another one for a part of the cluster: it knows of no life of it, or of one that is not over.
func (n *Node) believes(o *Node) bool {
	last := max(n.w.court.lives[o.home], n.links.heard[o.home])
	return last == 0 || last > n.fences[o.home]
}
