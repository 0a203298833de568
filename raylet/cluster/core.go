package cluster

import (
	"cmp"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"mobula/internal/ids"
	"mobula/raylet/sched"
)

// Defaults of a CoreConfig.
const (
	DefaultPatience   = 200 * time.Millisecond // some reports long
	DefaultCloseAfter = 10 * time.Second       // long compared with a pause between two steps of a program
	retrySetup        = 10 * time.Second       // after which a node that could start no worker is asked again
	firstReport       = 5 * time.Second        // within which a node that joins is heard of, and one that begins to live reports; it may be able until then
)

// CoreConfig configures a Core.
type CoreConfig struct {
	Config
	Self ids.Home
	// Random is drawn from where several nodes are best.
	Random *rand.Rand
	// Patience is how long a class waits on a node that had room by its reports, and says now that the class waits there, before another node is
	// looked for. 0: DefaultPatience.
	Patience time.Duration
	// CloseAfter is how long a job has nothing on another node before it is closed there. 0: DefaultCloseAfter.
	CloseAfter time.Duration
	// WaitForNodes is how long a demand that no node can run waits for one that can, before its owner is told.
	WaitForNodes time.Duration
	// NameOf is what a node is called in errors; nil: its home.
	NameOf func(ids.Home) string
}

// Core stands between the owners of this node's jobs and the schedulers of all nodes. It is not safe for concurrent use.
type Core struct {
	*nodes
	jobs    map[ids.JobID]*job
	leases  map[ids.LeaseID]*lease
	epoch   uint64 // of the questions of a core that was rebuilt
	waiting waiting
}

// nodes is what the core knows of nodes, and what it has asked of them.
type nodes struct {
	*step
	view    View // its amounts are the core's own: what was asked of a node is off
	peers   map[ids.Home]*peer
	gone    map[ids.Home]bool // whose last life that was heard of is over
	scratch set
	taking  []int32        // scratch of placeOn
	awaits  []sched.Placed // scratch of tellAwaited
}

// step is what the parts have in common: the configuration, and the time and output of the step under way.
type step struct {
	cfg  CoreConfig
	now  int64
	wake int64 // when the next Timer is due; 0: none
	out  []Effect
}

// New makes a core. One that takes the place of another is told so by its first event, Restored.
func New(cfg CoreConfig) (*Core, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	cfg.Patience = cmp.Or(cfg.Patience, DefaultPatience)
	if cfg.NameOf == nil {
		cfg.NameOf = ids.Home.String
	}
	cfg.CloseAfter = cmp.Or(cfg.CloseAfter, DefaultCloseAfter)
	ns := &nodes{step: &step{cfg: cfg}, view: View{Self: cfg.Self, Last: cfg.Self}, peers: map[ids.Home]*peer{cfg.Self: {}}, gone: make(map[ids.Home]bool)}
	return &Core{nodes: ns, jobs: make(map[ids.JobID]*job), leases: make(map[ids.LeaseID]*lease)}, nil
}

// Step takes one event and returns its effects. The core owns the slice; it is valid until the next Step.
func (c *Core) Step(now int64, ev Event) []Effect {
	clear(c.out)
	c.out = c.out[:0]
	c.now = max(now, c.now)
	switch ev := ev.(type) {
	case Restored:
		c.onRestored(ev)
	case FromOwner:
		c.fromOwner(c.job(ev.Job), ev.Event)
	case Locality:
		c.onLocality(ev)
	case Heard:
		c.hear(c.leases[ev.Lease])
	case Holds:
		c.onHolds(ev)
	case FromScheduler:
		c.fromScheduler(ev)
	case JobClosed:
		c.onJobClosed(ev)
	case JobAbandoned:
		c.onJobAbandoned(ev)
	case JobEnded:
		if j := c.jobs[ev.Job]; j != nil {
			c.openAll(j)
			c.forgetJob(j)
		}
	case NodeReport:
		c.onReport(ev.Node)
	case NodeUp:
		if c.peers[ev.Node] == nil {
			c.peers[ev.Node] = &peer{}
			delete(c.gone, ev.Node)
		}
	case NodeGone:
		c.onNodeGone(ev.Node)
	case Inspect:
		ev.Do(c)
	case Timer:
		c.onTimer()
	default:
		panic(unknown(ev))
	}
	return c.out
}

func (s *step) emit(e Effect) { s.out = append(s.out, e) }

func (s *step) tell(j *job, m sched.OwnerMsg) { s.emit(ToOwner{Job: j.id, Msg: m}) }

// alone tells whether no other node lives. Then everything passes as it comes.
func (ns *nodes) alone() bool { return len(ns.peers) == 1 }

// sortedJobs and sortedClasses give what a map has in a fixed order, so that a core is a function of its events.
func sortedJobs(jobs map[ids.JobID]*job) []*job {
	return slices.SortedFunc(maps.Values(jobs), func(a, b *job) int { return cmp.Compare(a.id, b.id) })
}

func (j *job) sortedClasses() []*class {
	return slices.SortedFunc(maps.Values(j.classes), func(a, b *class) int { return cmp.Compare(a.key.Class, b.key.Class) })
}
