package cluster

import (
	"maps"
	"slices"
	"time"

	"mobula/internal/ids"
	"mobula/raylet/sched"
	"mobula/wire"
)

// An owner keeps a lease as long as it has tasks for it. So a node that turns hot would get work for ever by the leases that it granted before. They are asked
// back, as a scheduler asks for those that another class is to have (sched.Reclaim): what runs there ends there, and what comes next is placed anew.

// relieveEvery is how often the leases of a hot node are asked back, at most.
const relieveEvery = time.Second

// relief takes leases back from one hot node.
type relief struct {
	c     *Core
	node  ids.Home
	at    int32          // its place in the view
	cools map[*class]set // nodes with room for a class's leases
	taken []taken
}

// taken is room that was set aside for a lease.
type taken struct {
	at   int32
	need []wire.Resource
}

// relieve asks owners for the leases of tasks on a hot node, for as many as nodes that are not hot have room. What was placed there and is not granted goes first;
// leases that were asked for and are not over count too. Where no node has room they stay: a task runs on a hot node rather than on none.
func relieve(c *Core, id ids.Home) {
	at, known := c.view.find(id)
	p := c.peers[id]
	if !known || c.alone() || !hot(&c.view.Nodes[at], c.cfg.Config) || p.relieved != 0 && c.now < p.relieved+int64(relieveEvery) {
		return
	}
	p.relieved = c.now
	r := &relief{c: c, node: id, at: int32(at), cools: make(map[*class]set)}
	r.placeOff()
	r.reclaim(true)
	r.reclaim(false)
	for _, x := range r.taken { // it is free until the owners want it
		c.view.Nodes[x.at].take(x.need, -1)
	}
}

// placeOff places anew what was placed on the node and is not granted, where another node has room for some of it.
func (r *relief) placeOff() {
	for _, j := range sortedJobs(r.c.jobs) {
		for _, cl := range j.sortedClasses() {
			if i, known := cl.find(r.node); known && cl.shares[i].placed > 0 && !j.resyncing && len(r.c.cooler(cl, r.at)) > 0 {
				r.c.unplace(cl, &cl.shares[i], cl.shares[i].placed)
				r.c.settle(cl)
			}
		}
	}
}

// reclaim sets room aside for the node's leases that were asked back, or asks for those that were not, as far as there is room.
func (r *relief) reclaim(asked bool) {
	for _, of := range slices.Sorted(maps.Keys(r.c.leases)) {
		l := r.c.leases[of]
		if of.Home() != r.node || l.asked != asked || l.class == nil || l.class.kind != wire.TaskNormal || l.job.resyncing {
			continue
		}
		to, found := r.firstFree(l.class)
		if !found {
			continue
		}
		r.c.view.Nodes[to].take(l.need, 1)
		r.taken = append(r.taken, taken{to, l.need})
		if !asked {
			l.asked = true
			r.noMore(l.class)
			r.c.tell(l.job, sched.Reclaim{Lease: of})
		}
	}
}

// firstFree gives the first of the nodes for a class that has room yet, and forgets those before it.
func (r *relief) firstFree(cl *class) (int32, bool) {
	of, looked := r.cools[cl]
	if !looked {
		of = r.c.cooler(cl, r.at)
	}
	for len(of) > 0 && !r.c.view.Nodes[of[0]].free(&cl.shape) {
		of = of[1:]
	}
	r.cools[cl] = of
	if len(of) == 0 {
		return 0, false
	}
	return of[0], true
}

// noMore tells the node's scheduler that nothing is wanted of a class there: it goes on granting by itself else, and in place of a lease that comes back.
func (r *relief) noMore(cl *class) {
	if s := cl.at(r.node); s.stands && s.placed+s.rest == 0 {
		s.asked = 0
		r.c.stand(cl, s, false)
		r.c.send(cl.job, r.node, sched.Want{Key: cl.key, Opts: cl.opts, Kind: cl.kind})
	}
}

// cooler gives the free nodes on which leases of a class are placed rather than on a hot one.
func (ns *nodes) cooler(cl *class, hotAt int32) set {
	var of set
	for i := range ns.view.Nodes {
		if n := &ns.view.Nodes[i]; ns.able(cl, n) && (int32(i) == hotAt || ns.free(cl, n)) {
			of = append(of, int32(i))
		}
	}
	of = cool(&ns.view, preferred(&ns.view, named(&ns.view, of, &cl.shape), &cl.shape), ns.cfg.Config)
	if len(of) == 0 || hot(&ns.view.Nodes[of[0]], ns.cfg.Config) {
		return nil
	}
	return of
}
