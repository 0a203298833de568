package jobs

import (
	"fmt"
	"maps"
	"slices"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/objectstore"
)

// Core is the logic.
type Core struct {
	node     string // its name, for errors
	jobs     map[ids.JobID]*job
	found    map[ids.JobID]objectstore.Inventory // of jobs that may come back yet
	settled  bool                                // none does any more
	clients  map[ids.ClientID]*Client            // let in, and not gone
	mapped   map[ids.ClientID]int                // the number of a client's last session of which something may be read yet
	arrivals map[ids.ClientID]Arrived            // workers of which the pool has said nothing yet
	cut      map[ids.JobID]*errs.Error           // why a job's driver was cut off; outlives the job
	out      []Effect
}

// New makes the core of a node without jobs.
func New(node string) *Core {
	return &Core{
		node: node, jobs: make(map[ids.JobID]*job), found: make(map[ids.JobID]objectstore.Inventory), clients: make(map[ids.ClientID]*Client),
		mapped: make(map[ids.ClientID]int), arrivals: make(map[ids.ClientID]Arrived), cut: make(map[ids.JobID]*errs.Error),
	}
}

// Step handles one event. The slice is valid until the next Step.
func (c *Core) Step(_ int64, ev Event) []Effect {
	clear(c.out)
	c.out = c.out[:0]
	switch ev := ev.(type) {
	case Began:
		c.owned(ev.Ask, ev.Job, job{here: ev.Here})
	case Restored:
		c.owned(ev.Ask, ev.Job, job{waits: true})
	case Found:
		c.inventory(ev)
	case AllRestored:
		c.allRestored(ev)
	case Alone:
		c.alone(ev.Job)
	case Start:
		c.start(ev)
	case Hosted:
		c.hosted(ev)
	case Over:
		c.over(ev)
	case Return:
		c.returns(ev)
	case Withdrawn:
		c.withdrawn(ev)
	case Join:
		c.join(ev)
	case Arrived:
		c.arrivals[ev.Client] = ev
	case Admit:
		c.admit(ev)
	case Refuse:
		c.refuse(ev)
	case GaveUp:
		c.gaveUp(ev)
	case Guest:
		c.guest(ev)
	case Cut:
		c.cut[ev.Job] = ev.Err
	case Missed:
		c.missed(ev)
	case Gone:
		c.gone(ev)
	case Unread:
		c.unread(ev)
	case Rebuild:
		c.rebuild(ev)
	case Rebuilt:
		c.rebuilt()
	}
	return c.out
}

func (c *Core) emit(e Effect) { c.out = append(c.out, e) }

func (c *Core) answer(a Ask, err *errs.Error) {
	if a != 0 {
		c.emit(Answer{a, err})
	}
}

// rebuild takes over what the shell has.
func (c *Core) rebuild(r Rebuild) {
	for _, j := range r.Jobs {
		c.jobs[j.ID] = &job{waits: j.Waits, alone: j.Alone, orphan: j.Orphan, left: j.Left, here: j.Here, away: j.Away, started: j.Started}
	}
	for _, cl := range r.Clients {
		cl.Knows = slices.Clone(cl.Knows)
		c.clients[cl.ID], c.mapped[cl.ID] = &cl, cl.Nth
	}
	c.settled = r.Settled
	for _, f := range r.Found {
		c.inventory(f)
	}
}

// rebuilt goes on with restored jobs whose drivers do not come.
func (c *Core) rebuilt() {
	for _, id := range slices.Sorted(maps.Keys(c.jobs)) {
		c.goOn(id, c.jobs[id])
	}
}

// errOver is what whoever wants something of a job that is over is told.
func (c *Core) errOver(id ids.JobID) *errs.Error {
	return errs.New(errs.CodeOwnerDied, "job %v has ended: its driver was gone%s", id, c.whyCut(id))
}

// errOrphan is for a driver of which what it waits for was given up.
func (c *Core) errOrphan(id ids.JobID) *errs.Error {
	return errs.New(errs.CodeOwnerDied, "job %v went on without its driver when node %s started again; connect anew", id, c.node)
}

// errAgain is for a session whose client has begun another.
func errAgain() *errs.Error { return errs.New(errs.CodeShutdown, "the client connected again") }

// whyCut is the end of a sentence about a job that is over: why its driver was cut off; empty if it left by itself.
func (c *Core) whyCut(id ids.JobID) string {
	if why := c.cut[id]; why != nil {
		return fmt.Sprintf(": the node had cut its driver off: %v", why)
	}
	return ""
}
