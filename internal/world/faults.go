package world

import (
	"slices"
	"strings"
	"time"
)

// kind names the parts of a node that a crash can hit.
type kind string

const (
	kindOwner     kind = "owner"
	kindRaylet    kind = "raylet"
	kindStore     kind = "store"
	kindDirectory kind = "directory"
	kindJobs      kind = "jobs"
	kindControl   kind = "gcs"
	kindMember    kind = "client"
	kindPeer      kind = "remote"
	kindTransfer  kind = "transfer"
	kindChooser   kind = "cluster"
)

// plan is the faults of a run: when the next one comes, and which are under way.
type plan struct {
	w        *World
	left     int
	next     int // the event at which it is due
	armed    *armed
	ongoing  int            // that last for a while
	counts   map[string]int // by kind
	second   *second
	starts   int // of processes that come to nothing
	calls    int // to the tables that fail
	verdicts int // of the control plane: a life is over
	poisons  int // events that were dropped
}

// armed is a crash that waits for its place: a step of a core of its kind, or of any core of its node.
type armed struct {
	n     *Node
	kind  kind // empty: any
	name  string
	do    func()
	until int

	poisons bool // the event is dropped, since the next core is lost at it too
}

// fault is a kind of fault. It says whether it could be done.
type fault struct {
	name   string
	weight int
	many   bool // it needs more than one node
	do     func(pl *plan, n *Node) bool
}

// faults are the kinds there are.
var faults []fault

func init() {
	faults = []fault{
		{"owner crash", 4, false, crash(kindOwner)},
		{"raylet crash", 3, false, crash(kindRaylet)},
		{"store crash", 4, false, crash(kindStore)},
		{"directory crash", 1, false, crash(kindDirectory)},
		{"jobs crash", 2, false, crash(kindJobs)},
		{"gcs crash", 1, false, crash(kindControl)},
		{"client crash", 1, false, crash(kindMember)},
		{"node kill", 3, false, (*plan).killNode},
		{"store not kept", 1, false, (*plan).killUnkept},
		{"driver kill", 1, false, (*plan).killDriver},
		{"driver cut off", 2, false, (*plan).cutDriver},
		{"machine loss", 0, false, (*plan).loseMachine},
		{"worker kill", 5, false, (*plan).killWorker},
		{"worker out of memory", 1, false, (*plan).outOfMemory},
		{"worker cut off", 2, false, (*plan).cutWorker},
		{"worker start", 1, false, (*plan).failStart},
		{"disk full", 2, false, (*plan).fillDisk},
		{"log full", 1, false, (*plan).fillLog},
		{"disk shaky", 2, false, (*plan).shakeDisk},
		{"disk rot", 2, false, (*plan).rotDisk},
		{"memory short", 2, false, (*plan).shortMemory},
		{"stall", 3, false, (*plan).stall},
		{"tables fail", 1, false, (*plan).failTables},
	}
	for _, k := range []kind{kindOwner, kindRaylet, kindStore, kindDirectory, kindJobs, kindControl} {
		faults = append(faults, fault{string(k) + " poisoned", 1, false, poison(k)})
	}
	faults = append(faults, nodeFaults()...)
}

func newPlan(w *World) *plan {
	return &plan{w: w, left: max(w.cfg.Faults, 0), counts: make(map[string]int), next: 200}
}

// gap is how many events lie between two faults, on average.
const gap = 90

// patience is how many events a crash waits for its place.
const patience = 300

// spent tells whether no fault comes any more, over whether none is under way either.
func (pl *plan) spent() bool { return pl.left == 0 && pl.armed == nil }

func (pl *plan) over() bool { return pl.spent() && pl.ongoing == 0 }

// end has no other fault come.
func (pl *plan) end() { pl.left, pl.armed = 0, nil }

// tick brings the next fault when it is due.
func (pl *plan) tick() {
	w := pl.w
	if a := pl.armed; a != nil && w.steps > a.until {
		if pl.armed = nil; a.do == nil {
			pl.left++ // another in its place
		} else { // its node does nothing that it could hit
			pl.struck(a.name)
			a.do()
		}
	}
	if pl.left == 0 || pl.armed != nil || w.steps < pl.next {
		return
	}
	n := w.nodes[w.rng.IntN(len(w.nodes))]
	f := pl.draw()
	switch {
	case w.cfg.Only != "":
	case pl.left == 1 && w.cfg.Seed%3 == 0:
		f = faultNamed("machine loss")
	case pl.left == w.cfg.Faults/2 && w.cfg.Seed%3 == 1 && slices.ContainsFunc(w.nodes, pl.losable):
		f = faultNamed("node lost")
	}
	if n.gone || !f.do(pl, n) {
		pl.next = w.steps + 5
		return
	}
	pl.left--
	pl.next = w.steps + 1 + w.rng.IntN(2*gap)
	if pl.armed == nil {
		pl.struck(f.name)
	} else {
		pl.armed.name = f.name
	}
}

func faultNamed(name string) *fault {
	return &faults[slices.IndexFunc(faults, func(f fault) bool { return f.name == name })]
}

func (pl *plan) draw() *fault {
	all := 0
	for i := range faults {
		all += pl.weight(&faults[i])
	}
	at := pl.w.rng.IntN(all)
	for i := range faults {
		if at -= pl.weight(&faults[i]); at < 0 {
			return &faults[i]
		}
	}
	return nil
}

func (pl *plan) weight(f *fault) int {
	if f.many && len(pl.w.nodes) == 1 || !strings.HasSuffix(f.name, pl.w.cfg.Only) {
		return 0
	}
	return f.weight
}

// struck counts a fault.
func (pl *plan) struck(name string) {
	pl.counts[name]++
	pl.w.model.disturbed = pl.w.now
	pl.w.log.add(pl.w, "FAULT", name)
}

// blow is what hits a part at a step.
type blow struct {
	do      func() // nil: nothing but the core is lost
	poisons bool   // the event is to bring down the next core too
}

func (b *blow) fall() {
	if b.do != nil {
		b.do()
	}
}

// strike is what hits a step of a part, before it or between two of its effects; nil: nothing.
func (pl *plan) strike(n *Node, k kind, ev any) *blow {
	a := pl.armed
	if a == nil || a.n != n || a.kind != "" && a.kind != k || a.poisons && !pl.mayPoison(ev) {
		return nil
	}
	pl.armed = nil
	return &blow{poisons: a.poisons, do: func() {
		if pl.struck(a.name); a.poisons {
			pl.poisons++
		}
		switch {
		case a.do != nil:
			a.do()
		case !a.poisons && pl.w.rng.IntN(3) == 0:
			pl.second = &second{k, 1 + pl.w.rng.IntN(6)}
		}
	}}
}

// second is a crash of the core that follows one which was thrown away, at one of the events that it steps first.
type second struct {
	kind kind
	left int
}

// strikeAgain is what hits a core at one of the events that it steps first; nil: nothing.
func (pl *plan) strikeAgain(k kind) *blow {
	if pl.second == nil || pl.second.kind != k {
		return nil
	}
	if pl.second.left--; pl.second.left > 0 {
		return nil
	}
	pl.second = nil
	return &blow{do: func() { pl.struck(rebuildCrash) }}
}

// rebuildCrash is the fault that comes with others.
const rebuildCrash = "rebuild crash"

// crash throws a core of a kind away at one of its next steps.
func crash(k kind) func(pl *plan, n *Node) bool {
	return func(pl *plan, n *Node) bool {
		pl.armed = &armed{n: n, kind: k, until: pl.w.steps + patience}
		return true
	}
}

func (pl *plan) killNode(n *Node) bool {
	if !n.up && pl.w.rng.IntN(4) > 0 { // sometimes while it starts
		return false
	}
	pl.armed = &armed{n: n, do: n.kill, until: pl.w.steps + patience}
	return true
}

// killUnkept kills a node that does not keep its store, as one that goes with the program that started it.
func (pl *plan) killUnkept(n *Node) bool {
	if !n.up {
		return false
	}
	pl.armed = &armed{n: n, until: pl.w.steps + patience, do: func() {
		n.kill()
		pl.w.model.storeLost(n)
		n.disk.index = index{}
		n.memory.notKept()
	}}
	return true
}

// killDriver kills a driver.
func (pl *plan) killDriver(n *Node) bool {
	p := pl.program(n)
	if p == nil {
		return false
	}
	p.ended, p.stage = true, "was killed"
	p.proc.kill("it was killed")
	return true
}

// cutDriver breaks the connection of a driver to its node, which both live on: its job ends, unless the node is killed before it notices.
func (pl *plan) cutDriver(n *Node) bool {
	p := pl.program(n)
	if p == nil || p.proc.conn == nil || !p.proc.conn.welcomed || p.proc.conn.broken {
		return false
	}
	p.cut = true
	p.proc.conn.cut()
	return true
}

// program draws a driver of a node that may be lost: another one goes on. nil: there is none.
func (pl *plan) program(n *Node) *program {
	var all []*program
	for _, p := range pl.w.programs {
		if !p.ended && !p.cut && p.proc.n == n && p.proc.begun {
			all = append(all, p)
		}
	}
	if len(all) == 0 || pl.running() < 2 {
		return nil
	}
	return all[pl.w.rng.IntN(len(all))]
}

// loseMachine ends everything on a node's machine. It is the last fault of a run: nobody is left to meet another.
func (pl *plan) loseMachine(n *Node) bool {
	pl.armed = &armed{n: n, until: pl.w.steps + patience, do: func() {
		for _, p := range pl.w.programs {
			if p.proc.n == n {
				p.ended, p.stage = true, "has lost its machine"
			}
		}
		n.loseMachine()
	}}
	return true
}

// worker draws a worker that lives; nil: there is none.
func (pl *plan) worker(n *Node) *process {
	var all []*process
	for _, p := range pl.w.processes {
		if p.n == n && p.worker != 0 && !p.dead {
			all = append(all, p)
		}
	}
	if len(all) == 0 {
		return nil
	}
	return all[pl.w.rng.IntN(len(all))]
}

func (pl *plan) killWorker(n *Node) bool {
	p := pl.worker(n)
	if p != nil {
		p.kill("it was killed")
	}
	return p != nil
}

func (pl *plan) outOfMemory(n *Node) bool {
	p := pl.worker(n)
	if p == nil || p.id == 0 || !n.up {
		return false
	}
	n.outOfMemory(p)
	return true
}

func (pl *plan) cutWorker(n *Node) bool {
	p := pl.worker(n)
	if p == nil || p.conn == nil || !p.conn.welcomed || p.conn.broken {
		return false
	}
	p.conn.cut()
	return true
}

func (pl *plan) failStart(*Node) bool {
	pl.starts++
	return true
}

// startFails tells whether the process that is being started comes to nothing.
func (pl *plan) startFails() bool {
	if pl.starts == 0 {
		return false
	}
	pl.starts--
	return true
}

// lasts has something be so for a while.
func (pl *plan) lasts(on *bool, most time.Duration) bool {
	if *on {
		return false
	}
	*on = true
	pl.ongoing++
	pl.w.after(pl.w.between(time.Millisecond, most), func() {
		*on = false
		pl.ongoing--
	})
	return true
}

func (pl *plan) fillDisk(n *Node) bool    { return pl.lasts(&n.spill.full, 2*time.Second) }
func (pl *plan) fillLog(n *Node) bool     { return pl.lasts(&n.disk.full, 200*time.Millisecond) }
func (pl *plan) shakeDisk(n *Node) bool   { return pl.lasts(&n.spill.shaky, 200*time.Millisecond) }
func (pl *plan) shortMemory(n *Node) bool { return pl.lasts(&n.memory.short, 500*time.Millisecond) }

// short tells whether the machine had no memory or disk at some time.
func (pl *plan) short() bool { return pl.counts["disk full"]+pl.counts["memory short"] > 0 }

func (pl *plan) rotDisk(n *Node) bool { return n.spill.rot() }

// stall has a box take nothing for some time.
func (pl *plan) stall(*Node) bool {
	ready := pl.w.ready
	if len(ready) == 0 {
		return false
	}
	d := pl.w.between(time.Millisecond, 300*time.Millisecond)
	ready[pl.w.rng.IntN(len(ready))].hold(d)
	pl.during(d)
	return true
}

func (pl *plan) failTables(*Node) bool {
	pl.calls += 1 + pl.w.rng.IntN(3)
	return true
}

// tablesFail tells whether calls to the tables fail in this run.
func (pl *plan) tablesFail() bool { return pl.w.cfg.Faults > 0 }

// callFails tells whether a call to the tables fails.
func (pl *plan) callFails() bool {
	if pl.calls == 0 {
		return false
	}
	pl.calls--
	return true
}
