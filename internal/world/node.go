package world

import (
	"fmt"

	"mobula/gcs"
	"mobula/gcs/directory"
	"mobula/internal/ids"
	"mobula/internal/node/jobs"
	"mobula/objectstore"
	"mobula/raylet"
)

// Node is a node: what its process has in this life, and what outlives that.
type Node struct {
	w    *World
	home ids.Home
	name string
	life uint64 // the number of this life; one that has ended counts as the next
	up   bool   // it lets clients and other nodes in

	gone    bool                // for good
	wasLost bool                // its machine, once
	off     bool                // its machine does not answer
	lone    int64               // until when it reaches nobody, and not the tables
	stopped int64               // until when its machine does nothing
	mayLive bool                // it was never silent for so long in this life that it may be declared dead
	fences  map[ids.Home]uint64 // the lives of others that it knows to be over, each with all before it

	numbers numbers
	disk    disk
	memory  *memory
	spill   *spillStorage

	// Of one life.
	boxes     []*box
	sessions  map[ids.ClientID]*session
	owners    map[ids.JobID]*ownerShell
	jobs      *jobShell
	directory *part[directory.Event, directory.Effect]
	control   *control
	store     *storeShell
	raylet    *rayletShell
	links     *links
	peers     map[ids.Home]*peerShell
	chooser   *chooserShell
	transfer  *transferShell
}

// The parts of a node that are one core each, as the shells have them.
type (
	jobsPart   = part[jobs.Event, jobs.Effect]
	gcsPart    = part[gcs.Event, gcs.Effect]
	storePart  = part[objectstore.Event, objectstore.Effect]
	rayletPart = part[raylet.Event, raylet.Effect]
)

func newNode(w *World, home ids.Home) *Node {
	n := &Node{w: w, home: home, name: fmt.Sprint("node", home), numbers: numbers{home: home}, disk: disk{jobs: make(map[ids.JobID]*jobFile)}, fences: make(map[ids.Home]uint64)}
	n.memory = newMemory(n)
	n.spill = newSpillStorage(n)
	return n
}

// box is a mailbox of this life.
func (n *Node) box(name string, take func(ev any)) *box {
	b := n.w.newBox(n.name+" "+name, take)
	n.boxes = append(n.boxes, b)
	if n.stopped > n.w.now {
		b.hold(n.stopped - n.w.now)
	}
	return b
}

// start begins a life, in the order of internal/node: those that are asked are there before those that ask.
func (n *Node) start() {
	n.life++
	n.off, n.stopped, n.mayLive = false, 0, true
	n.numbers.begin()
	n.sessions, n.owners = make(map[ids.ClientID]*session), make(map[ids.JobID]*ownerShell)
	n.links, n.peers = newLinks(n), make(map[ids.Home]*peerShell)
	n.startJobs()
	n.startDirectory()
	n.startControl()
	n.startTransfer()
	n.startStore()
	n.startChooser()
	n.startRaylet()
	n.jobs.restore()
}

// open lets clients and other nodes in. The node's row is in the tables before: so the judge knows every life that others know.
func (n *Node) open() {
	until := n.lone
	if !n.alone() {
		until = max(until, n.w.noQuorum)
	}
	if wait, life := until-n.w.now, n.life; wait > 0 {
		n.w.after(wait, func() {
			if n.life == life {
				n.open()
			}
		})
		return
	}
	n.up = true
	if !n.alone() {
		n.chooser.report()
		n.attend()
	}
}

// kill ends the node's process at once, and starts it again after a while. Its workers end with it.
func (n *Node) kill() { n.die(n.w.between(pauseFrom, pauseTo), true) }

// die ends the node's process for a time. With word the others hear at once that their connections are closed; else its machine has gone with it.
func (n *Node) die(d int64, word bool) {
	w := n.w
	n.life++
	n.up, n.off, n.mayLive = false, !word, false
	w.model.nodeLost(n, false)
	for _, o := range n.owners {
		if o.rest.Len() > 0 {
			w.model.forgotten[o.job] = true
		}
	}
	for _, p := range w.processes {
		if p.n != n || p.dead {
			continue
		}
		if p.conn != nil {
			p.conn.nodeLost()
		}
		if p.worker != 0 {
			p.vanish()
		}
	}
	for _, b := range n.boxes {
		b.close()
	}
	n.boxes = nil
	n.hangUpAll(word)
	n.spill.processLost()
	n.memory.processLost()
	life := n.life
	w.after(d, func() {
		if n.life == life && !n.gone {
			n.start()
		}
	})
}

// lose ends a node for good.
func (n *Node) lose() {
	n.gone = true
	for _, p := range n.w.programs {
		if p.proc.n == n && !p.ended {
			p.ended, p.stage = true, "has lost its node"
		}
	}
	n.loseMachine()
}

// loseMachine ends all processes of the node's machine, and what was only in memory or not synced.
func (n *Node) loseMachine() {
	n.wasLost = true
	for _, p := range n.w.processes {
		if p.n == n && !p.dead && p.worker == 0 {
			p.vanish()
		}
	}
	n.die(n.w.between(pauseFrom, pauseTo), n.w.rng.IntN(2) == 0)
	n.disk.lose(n.w)
	n.memory.lose()
}

// numbers is where a node gives out ids. None is given out twice, in whatever life.
type numbers struct {
	home    ids.Home
	jobs    uint64
	clients uint64
	workers uint64
	leases  uint64
	lives   uint64
	epochs  uint64 // of components that were built anew in this life
	pid     int32
}

// begin begins a life: numbers that the last one may have given out are left out.
func (c *numbers) begin() {
	c.lives++
	c.epochs = 0
	if c.lives > 1 {
		c.leases += spareNumbers
		c.workers += spareNumbers
	}
}

// spareNumbers is room for what was given out and not noted.
const spareNumbers = 1 << 16

func (c *numbers) newEpoch() uint64 {
	c.epochs++
	return c.home.Epoch(c.lives, c.epochs)
}

func (c *numbers) nextJob() ids.JobID {
	c.jobs++
	return ids.JobID(c.home.ID(c.jobs))
}

func (c *numbers) nextClient() ids.ClientID {
	c.clients++
	return ids.ClientID(c.home.ID(c.clients))
}

func (c *numbers) nextPID() int32 {
	c.pid++
	return c.pid
}
