package owner

// Core is the owner of one job, composed of its parts. Step it from one goroutine.
//
// Each part has state of its own and methods of its own. They are listed from the lowest to the highest. A part calls those
// before it directly, and asks those behind it by an interface that it declares and the Core satisfies: so each can be tested with the parts that it
// is made of alone.
type Core struct {
	*step
	*journal
	*tasks
	*objects
	*clients
	*gets
	*promises
	*values
	*memory
	*leases
	*streams
	*lineage
	*calls
	*actors
	*life
	*deaths
	*peers
	*job
	*recovery
}

// New makes the core of a new job.
func New(cfg Config) *Core {
	s := &step{cfg: cfg.withDefaults(), timers: newTimerHeap()}
	c := &Core{step: s}
	c.journal = newJournal(s)
	c.tasks = newTasks(s)
	c.objects = newObjects(s, c.journal, c.tasks, c)
	c.clients = newClients(s)
	c.gets = &gets{step: s, objects: c.objects, clients: c.clients, up: c}
	c.promises = newPromises(s, c.objects, c)
	c.values = &values{step: s, journal: c.journal, tasks: c.tasks, objects: c.objects, clients: c.clients, up: c}
	c.memory = &memory{step: s, journal: c.journal, tasks: c.tasks, objects: c.objects, up: c}
	c.leases = newLeases(s, c.tasks, c.clients, c.promises, c.memory, c)
	c.streams = &streams{step: s, journal: c.journal, tasks: c.tasks, objects: c.objects, values: c.values, leases: c.leases, up: c}
	c.lineage = &lineage{step: s, tasks: c.tasks, objects: c.objects, clients: c.clients, gets: c.gets, memory: c.memory, leases: c.leases, streams: c.streams, up: c}
	c.calls = &calls{step: s, tasks: c.tasks, objects: c.objects, memory: c.memory, leases: c.leases, up: c}
	c.actors = newActors(s, c.journal, c.tasks, c.objects, c.clients, c.leases, c.calls, c)
	c.life = &life{step: s, journal: c.journal, tasks: c.tasks, objects: c.objects, clients: c.clients, promises: c.promises, values: c.values, memory: c.memory,
		leases: c.leases, streams: c.streams, lineage: c.lineage, calls: c.calls, actors: c.actors}
	c.deaths = &deaths{step: s, journal: c.journal, tasks: c.tasks, clients: c.clients, memory: c.memory, leases: c.leases, calls: c.calls, actors: c.actors, life: c.life}
	c.peers = &peers{step: s, objects: c.objects, clients: c.clients, up: c}
	c.job = &job{step: s, journal: c.journal, tasks: c.tasks, objects: c.objects, clients: c.clients, gets: c.gets, leases: c.leases, streams: c.streams,
		actors: c.actors, life: c.life, deaths: c.deaths}
	c.recovery = &recovery{step: s, journal: c.journal, tasks: c.tasks, objects: c.objects, clients: c.clients, gets: c.gets, promises: c.promises, values: c.values,
		leases: c.leases, streams: c.streams, lineage: c.lineage, calls: c.calls, actors: c.actors, life: c.life, peers: c.peers, job: c.job, up: c}
	return c
}

// Step takes one event and gives what is to be done, in order. The slice, and the Records,
// Cookies and Changes in it, are the core's and valid until the next Step. now is Unix ns and
// never goes back. It panics only where the core itself is at fault: it is then to be
// thrown away and rebuilt.
func (c *Core) Step(now int64, ev Event) []Effect {
	if c.stopped {
		return nil
	}
	c.begin(now)
	c.resuming = nil
	if _, ok := ev.(Stopping); ok {
		c.stop()
	} else if c.recovering {
		c.deferEvent(ev)
	} else {
		c.handle(ev)
	}
	c.finishStep()
	return c.emitted()
}

const keepLogbuf = 1 << 20 // bytes; a larger buffer is not kept for the next step

func (c *Core) begin(now int64) {
	c.now = max(now, c.now)
	clear(c.effects)
	c.effects = append(c.effects[:0], Effect{})
	clear(c.logs)
	c.logs = c.logs[:0]
	if cap(c.logbuf) > keepLogbuf {
		c.logbuf = nil
	}
	c.logbuf = c.logbuf[:0]
	clear(c.cookies)
	c.cookies = c.cookies[:0]
	clear(c.changes)
	c.changes = c.changes[:0]
	c.refillFreeList()
}
