package cluster

import (
	"cmp"
	"slices"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/raylet/sched"
	"mobula/wire"
)

// class is what an owner wants of a class, and which nodes were asked for it.
type class struct {
	key     sched.ClassKey
	job     *job
	opts    *wire.TaskOptions
	kind    wire.TaskKind
	shape   Shape
	invalid bool // its options say no shape: the own scheduler says what is wrong with them
	told    int  // the backlog of the owner's last Want; 0: nothing is wanted
	left    int  // told, less the leases granted since
	placed  int  // of left, that for which a node had room by its reports
	reached int  // nodes on which the rest waits too
	leases  int
	unheard int            // of leases, those that the owner may not have heard of when it said told
	shares  []share        // by node
	queued  bool           // in Core.waiting
	refused bool           // its owner was told that no node can run it, and not yet that one can
	answers bool           // it was asked again of this node's scheduler while the node was alone: that says whether it can run
	crossed bool           // this node's scheduler refused it while the node was alone: a number may have crossed with that, which the owner's next Want takes back
	awaited []sched.Placed // of a class that is to be spread: where leases are placed that are yet to come, as its owner was told
	giveUp  int64          // when its owner is told so; 0: a node can
	named   bool           // to the node that stands by
}

// share is what a node was asked for a class.
type share struct {
	node    ids.Home
	asked   int         // as it was told, less the leases it granted since
	stands  bool        // it was last told a number above zero: once it has granted all it goes on by itself, with part of the number
	placed  int         // for which it had room by its reports
	rest    int         // for which no node has, and which wait there
	reached bool        // one of the rest waits there too
	since   int64       // when it was asked for more, or granted
	refused *errs.Error // it can not run the class
	retry   int64       // when it is asked again though it refused; 0: when it says so
}

func (c *Core) newClass(j *job, key sched.ClassKey, opts *wire.TaskOptions, kind wire.TaskKind) *class {
	cl := &class{key: key, job: j, opts: opts, kind: kind}
	var err error
	cl.shape, err = ShapeOf(opts, kind)
	cl.invalid = err != nil
	if err := j.refused[key.Class]; err != nil {
		cl.refused, cl.at(c.cfg.Self).refused = true, err
		delete(j.refused, key.Class)
	}
	j.classes[key.Class] = cl
	return cl
}

// rest is how many tasks wait for which no node is free.
func (cl *class) rest() int { return max(cl.left-cl.placed, 0) }

func (cl *class) find(n ids.Home) (int, bool) {
	return slices.BinarySearchFunc(cl.shares, n, func(s share, n ids.Home) int { return cmp.Compare(s.node, n) })
}

// at gives what a node was asked for, or makes it. It is valid until the next call.
func (cl *class) at(n ids.Home) *share {
	i, known := cl.find(n)
	if !known {
		cl.shares = slices.Insert(cl.shares, i, share{node: n})
	}
	return &cl.shares[i]
}

// able tells whether a node could run a class, and has not refused it.
func (ns *nodes) able(cl *class, n *Node) bool {
	if !n.able(&cl.shape) {
		return false
	}
	i, known := cl.find(n.ID)
	return !known || cl.shares[i].refused == nil
}

func (ns *nodes) ableAt(cl *class, id ids.Home) bool {
	i, known := ns.view.find(id)
	return known && ns.able(cl, &ns.view.Nodes[i])
}

// free tells whether a node that is able could run a class now.
func (ns *nodes) free(cl *class, n *Node) bool { return n.free(&cl.shape) && !cl.job.closingAt(n.ID) }

// staysHome tells whether all that is wanted of a class is asked for here, whatever nodes report.
func (ns *nodes) staysHome(cl *class) bool { return cl.invalid || ns.alone() }

// forget drops a class that is neither wanted nor held. One that was refused stays, so that its owner can be told when that ends, and one of which a number
// may have to be taken back.
func (c *Core) forget(cl *class) {
	if cl.told > 0 || cl.leases > 0 || cl.refused || cl.crossed {
		return
	}
	c.waiting.unlist(cl)
	delete(cl.job.classes, cl.key.Class)
	delete(cl.job.args, cl.key.Class)
}

// waiting is the classes with tasks for which no node is free, the next to be served first.
type waiting []*class

// unlist takes a class out of those that wait.
func (w *waiting) unlist(cl *class) {
	if cl.queued {
		cl.queued = false
		i := slices.Index(*w, cl)
		*w = slices.Delete(*w, i, i+1)
	}
}
