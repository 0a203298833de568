package world

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"time"

	"mobula/internal/ids"
)

// Config says what a world is made of. The zero value of a field takes its default.
type Config struct {
	Seed   uint64
	Nodes  int    // default 3
	CPUs   int    // of a node; default 2
	Store  uint64 // bytes of a node's store; default 192 KiB: programs spill
	Jobs   int    // programs, two on each node in turn; default 3: the last node has none
	Tasks  int    // of all programs, about; default 200
	Faults int    // default 24; below 0: none
	Only   string // the end of the names of all faults that come; empty: of all kinds
	// Shares has programs of different nodes use each other's objects.
	Shares bool
	// NoTables has the tables of the control plane answer nobody. Programs name no actors then.
	NoTables bool
	// Tamper is asked about each event that is put into a box, and gives what is put there. So tests plant mutants.
	Tamper func(w *World, box string, ev any) []any
	// Trace has each event of a run written down, for a failure's report. It makes a run ten times slower.
	Trace bool
}

func (c Config) withDefaults() Config {
	def := func(v *int, d int) {
		if *v == 0 {
			*v = d
		}
	}
	def(&c.Nodes, 3)
	def(&c.CPUs, 2)
	def(&c.Jobs, 3)
	def(&c.Tasks, 200)
	def(&c.Faults, 24)
	if c.Store == 0 {
		c.Store = 192 << 10
	}
	return c
}

// The bounds of a run.
const (
	maxSteps = 600_000          // events
	maxTime  = 20 * time.Minute // that programs may take when the faults are over
	rest     = 40 * time.Second // for which nodes talk on when programs have ended and faults are over
	begin    = int64(1e18)      // when worlds begin
)

// World is nodes, the processes of their clients, and what lies between them.
type World struct {
	cfg    Config
	rng    *rand.Rand
	now    int64
	steps  int
	boxes  int
	ready  []*box // those with something to take, in order
	timers []*timer
	timed  uint64
	log    trace

	tables    *tables // of the control plane
	court     *court
	noQuorum  int64 // until when the tables have no leader
	lines     []*line
	cuts      map[nodePair]int64 // until when nodes do not reach each other
	slow      map[nodePair]int64 // until when what goes between them takes long
	nodes     []*Node
	processes []*process // every one that ever ran, in order of its start
	programs  []*program
	plan      *plan
	model     *model
	crossings uint64 // of references from job to job
	offers    []*offer
	restAt    int64 // when nothing is repeated any more; 0: there is still something to do
}

// New makes a world whose nodes are up, and whose programs are about to connect.
func New(cfg Config) *World {
	cfg = cfg.withDefaults()
	w := &World{cfg: cfg, rng: rand.New(rand.NewPCG(cfg.Seed, 0x6d6f62756c61)), now: begin}
	w.log.init(cfg.Trace)
	w.cuts, w.slow = make(map[nodePair]int64), make(map[nodePair]int64)
	w.tables, w.model, w.plan, w.court = newTables(), newModel(), newPlan(w), newCourt(w)
	for i := range cfg.Nodes {
		w.nodes = append(w.nodes, newNode(w, ids.Home(i+1)))
	}
	for _, n := range w.nodes {
		n.start()
	}
	if cfg.Nodes > 1 {
		w.court.sit()
	}
	if cfg.Shares && cfg.Nodes > 2 && w.rng.IntN(2) == 0 { // what goes from one to the other by way of a third one is there first
		i := w.rng.IntN(cfg.Nodes)
		w.slow[pairOf(w.nodes[i], w.nodes[(i+1)%cfg.Nodes])] = math.MaxInt64
	}
	for i := range cfg.Jobs {
		w.programs = append(w.programs, newProgram(w, w.nodes[i/2%len(w.nodes)], i))
	}
	return w
}

// Run runs a world to its end.
func Run(cfg Config) (Report, error) {
	w := New(cfg)
	err := w.run()
	return w.report(), err
}

// run lets everything happen until the programs have ended and nothing is left to do.
func (w *World) run() (err error) {
	defer w.stopThreads()
	defer func() {
		if p := recover(); p != nil {
			err = w.failed(p)
		}
	}()
	quietBy := w.now + int64(maxTime)
	for w.turn() {
		w.plan.tick()
		if w.restAt == 0 && w.done() && w.plan.ongoing == 0 {
			w.restAt = w.now + int64(rest)
			w.plan.end()
		}
		switch {
		case !w.plan.over():
			quietBy = w.now + int64(maxTime)
		case !w.done() && w.now > quietBy:
			w.fail("programs have not ended %v after the last fault: %s", maxTime, w.waiting())
		case w.steps > maxSteps:
			w.fail("it does not come to rest: %s", w.waiting())
		}
	}
	if !w.done() {
		w.fail("nothing is left to happen, and programs have not ended: %s", w.waiting())
	}
	w.checkEnd()
	return nil
}

// turn lets one thing happen; false: nothing can any more.
func (w *World) turn() bool {
	w.fire()
	if len(w.ready) == 0 {
		if len(w.timers) == 0 {
			return false
		}
		w.now = max(w.now, w.timers[0].at)
		return true
	}
	w.now += 1 + w.rng.Int64N(int64(stepTime))
	w.steps++
	w.takeNow(w.ready[w.rng.IntN(len(w.ready))])
	return true
}

// takeNow has a box's next event taken.
func (w *World) takeNow(b *box) {
	ev := b.next()
	w.log.note(w, b, ev)
	b.take(ev)
}

// done tells whether every program has ended.
func (w *World) done() bool {
	for _, p := range w.programs {
		if !p.ended {
			return false
		}
	}
	return true
}

// node is the node of a home.
func (w *World) node(home ids.Home) *Node { return w.nodes[home-1] }

// each has something done again and again, until the run has come to its end.
func (w *World) each(d time.Duration, do func()) {
	if w.restAt == 0 || w.now < w.restAt {
		w.after(int64(d), do)
	}
}

// waiting says where programs stand.
func (w *World) waiting() string {
	var b strings.Builder
	for _, p := range w.programs {
		if !p.ended {
			fmt.Fprintf(&b, "\nprogram %d of job %v: %s", p.n, p.proc.job, p.where())
		}
	}
	return b.String()
}

// fail ends the run: a promise is broken.
func (w *World) fail(format string, args ...any) { panic(broken(fmt.Sprintf(format, args...))) }

// broken is a promise that is broken.
type broken string
