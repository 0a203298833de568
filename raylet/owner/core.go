package owner

import (
	"fmt"
	"time"

	"mobula/internal/ids"
	"mobula/raylet/owner/task"
	"mobula/wire"
)

// Core is the owner of one job. Step it from one goroutine.
type Core struct {
	cfg Config
	now int64 // of the step, Unix ns

	tasks    table
	puts     table                    // of Put
	strays   map[ids.ObjectID]*objRec // referred to and unknown
	actors   map[ids.ActorID]*actorRec
	promises map[ids.ObjectID]promise
	streams  int                         // records of streaming tasks
	born     int64                       // of the task submitted last
	kids     map[ids.TaskID][]ids.TaskID // of tasks that have not ended and submitted others

	clients    map[ids.ClientID]*clientRec
	drivers    int
	leases     map[ids.LeaseID]*leaseRec
	pastLeases map[ids.LeaseID]struct{} // that ended, of a rebuilt core
	classes    classTable

	lineage      taskList // tasks that ended and could run again, oldest first
	lineageBytes int64
	budget       budget
	timers       timerHeap
	armed        int64 // when the last After is due; 0: none

	orphan     bool      // the last driver is gone
	ended      bool      // and with it the job: no detached actor is left
	told       bool      // JobEnded is out
	stopped    bool      // the node stops: nothing is taken in any more
	lenient    bool      // callers' sequences may begin anywhere: this core was rebuilt
	epoch      uint64    // of the restart that made this core; 0: none
	pause      *recovery // waits for its clients
	resuming   *recovery // has stepped what it had kept back, in this step
	stats      Counters
	restarting *taskRec // the creation of an actor that was just moved to restarting
	byState    [16]int
	optNo      map[*wire.TaskOptions]uint32 // options in the log
	optKeys    map[string]uint32
	optByNo    map[uint32]*wire.TaskOptions
	optCookies map[uint32]*uint64
	putCookies map[ids.ObjectID][]*uint64 // of further records about puts
	deadLog    []*uint64                  // what a rebuilt core found in the log and has no use for
	tombs      []*uint64                  // of forget records, oldest first
	records    uint64                     // numbers given out
	optLast    *wire.TaskOptions
	optLNo     uint32
	fetches    map[uint64]*fetch
	passing    map[uint64]passing     // references on their way to other jobs
	silent     map[ids.JobID]struct{} // whose owners are to tell a rebuilt core what they have
	token      uint64

	// Of the step.
	effects     []Effect // the first is for the log
	logs        []LogRecord
	logbuf      []byte
	readyQ      []*taskRec // whose last argument was resolved
	workQ       []*taskRec // to look at the arguments of
	loose       []*objRec  // that lost a reference
	dirtyClass  []*classRec
	dirtyActor  []*actorRec
	movedActor  []*actorRec
	escalated   []escalation
	bereft      bool // a detached actor has died, and there is no driver
	dirtyLease  []*leaseRec
	dirtyStream []*taskRec
	unneeded    []promise // given up, and to be told
	frees       []ids.ObjectID
	forgot      []ids.ObjectID
	cookies     []*uint64
	changes     []Transition
	creditors   []*clientRec
	keyBuf      []byte

	sweeps       []*sweep // under way, one after another
	sweeping     *timer   // of the next slice
	sweepBuf     []*objRec
	reaped       []*taskRec // in this step
	tasksFree    []*taskRec
	waitsFree    []*waits
	resolvedFree []wire.Resolved
	lastLease    *leaseRec
	wanting      int // classes that wait for leases
	lastClient   *clientRec
}

// New makes the core of a new job.
func New(cfg Config) *Core {
	return &Core{
		cfg:        cfg.withDefaults(),
		strays:     make(map[ids.ObjectID]*objRec),
		promises:   make(map[ids.ObjectID]promise),
		actors:     make(map[ids.ActorID]*actorRec),
		kids:       make(map[ids.TaskID][]ids.TaskID),
		clients:    make(map[ids.ClientID]*clientRec),
		leases:     make(map[ids.LeaseID]*leaseRec),
		classes:    newClassTable(),
		optNo:      make(map[*wire.TaskOptions]uint32),
		optKeys:    make(map[string]uint32),
		optByNo:    make(map[uint32]*wire.TaskOptions),
		optCookies: make(map[uint32]*uint64),
		putCookies: make(map[ids.ObjectID][]*uint64),
		fetches:    make(map[uint64]*fetch),
		passing:    make(map[uint64]passing),
		silent:     make(map[ids.JobID]struct{}),
	}
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
	} else if c.pause != nil {
		c.hold(ev)
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
	c.recycleTasks()
}

func (c *Core) handle(ev Event) {
	switch ev := ev.(type) {
	case FromClient:
		c.fromClient(ev)
	case FromStore:
		c.fromStore(ev.Msg)
	case FromSched:
		c.fromSched(ev.Msg)
	case FromRegistry:
		c.fromRegistry(ev.Msg)
	case FromOwner:
		c.fromOwner(ev)
	case CancelRequested:
		c.cancel((*wire.Cancel)(&ev))
	case ClientJoined:
		c.clientJoined(ev)
	case ClientGone:
		c.clientGone(ev)
	case ClientRead:
		c.clientRead(ev)
	case Timer:
		c.tick()
	case Fetched:
		c.fetched(ev)
	case EndJob:
		c.endJob(ev.Err)
	case Restored:
		c.restored(ev)
	default:
		panic(fmt.Sprintf("owner: %T is not an event of the owner", ev))
	}
}

// fromClient steps a client's messages. Those of an unknown client are dropped: it is gone.
func (c *Core) fromClient(ev FromClient) {
	cl := c.client(ev.Client)
	if cl == nil {
		return
	}
	for i, m := range ev.Msgs {
		if i%warmAhead == 0 {
			c.warmMessages(ev.Msgs[i:])
		}
		c.message(cl, m)
	}
}

func (c *Core) message(cl *clientRec, m wire.Msg) {
	switch m := m.(type) {
	case *wire.Submit:
		c.submit(cl, m.Spec)
	case *wire.Done:
		c.done(cl, m)
	case *wire.Get:
		c.get(cl, m.ID, m.Fetch)
	case *wire.Release:
		for i, id := range m.IDs {
			if i%warmAhead == 0 {
				c.tasks.warm(m.IDs[i:])
			}
			c.release(cl, id)
		}
	case *wire.AddRef:
		c.addRef(cl, m.ID)
	case *wire.PutValue:
		c.putValue(cl, m)
	case *wire.Seal:
		c.seal(cl, m)
	case *wire.StreamItem:
		c.streamItem(cl, m)
	case *wire.StreamNext:
		c.streamNext(cl, m.Task, m.Index)
	case *wire.Unget:
		c.unget(cl, m.ID)
	case *wire.Blocked:
		c.blocked(cl, m)
	case *wire.Unblocked:
		c.unblocked(cl, m)
	case *wire.Cancel:
		c.cancel(m)
	case *wire.KillActor:
		c.killActor(m)
	case *wire.ActorStopped:
		c.actorStopped(cl, m)
	case *wire.WatchActor:
		c.watchActor(cl, m)
	case *wire.Holdings:
		c.fetchAgain(cl, m)
	}
}

// finishStep follows up on what the event set in motion and emits what was collected.
func (c *Core) finishStep() {
	c.drain()
	if c.pause == nil && !c.stopped {
		c.dispatchAll()
		c.settleRefs()
		c.drain() // nothing of a drop makes work, but a dead actor's calls end
		c.dispatchAll()
		c.balance()
	}
	c.flushLeases()
	c.flushNews()
	c.flushUnneeded()
	c.flushStreams()
	c.flushFreed()
	c.flushCredit()
	c.arm()
	if len(c.changes) > 0 {
		c.effects = append(c.effects, Effect{Kind: Transitions, Changes: &c.changes})
	}
	if c.orphan {
		c.maybeEnded()
	}
}

// drain works until no task's arguments are to be looked at, and no actor's failure is another's.
func (c *Core) drain() {
	for len(c.readyQ)+len(c.workQ) > 0 || (len(c.escalated) > 0 || c.bereft) && c.pause == nil {
		for i := 0; i < len(c.readyQ); i++ {
			c.argsReady(c.readyQ[i])
		}
		clear(c.readyQ)
		c.readyQ = c.readyQ[:0]
		for i := 0; i < len(c.workQ); i++ {
			c.await(c.workQ[i])
		}
		clear(c.workQ)
		c.workQ = c.workQ[:0]
		if len(c.escalated) > 0 && c.pause == nil {
			c.escalate()
		}
		if c.bereft && c.pause == nil {
			c.endHeirs()
		}
	}
}

// move takes a task along its table. A move that the table does not have is a fault of the
// core: whoever calls has looked at the state.
func (c *Core) move(t *taskRec, ev task.Event) {
	to, ok := task.Next(t.state, ev)
	if !ok {
		panic(fmt.Sprintf("owner: task %v (%s) is %v and cannot %v", t.id(), t.name(), t.state, ev))
	}
	c.byState[t.state]--
	c.byState[to]++
	t.state = to
	t.since = c.now
	if c.cfg.Transitions {
		c.changed(t, c.now)
	}
}

func (c *Core) changed(t *taskRec, at int64) {
	ch := Transition{Spec: t.spec, State: t.state, Attempt: t.start, At: at, Restart: t == c.restarting}
	if ch.Restart {
		c.restarting = nil
	}
	if t.state.Terminal() {
		ch.Took = time.Duration(ticks(c.now)-t.begun) * tick
	}
	if l := t.lease; l != nil {
		ch.Lease, ch.Worker = l.id, l.worker.id
	}
	if t.x != nil && (t.state.Terminal() || t.state == task.PendingArgs || t.state == task.Backoff) {
		ch.Reason = t.x.err
	}
	if ch.Spec != nil {
		c.changes = append(c.changes, ch)
	}
}

// object finds an object, or nil.
func (c *Core) object(id ids.ObjectID) *objRec {
	if id.Index&ids.PutBit != 0 {
		if o := c.puts.find(&id); o != nil {
			return o
		}
	} else if t := c.tasks.task(id.Task); t != nil {
		if o := t.ret(id.Index); o != nil {
			return o
		}
	}
	if len(c.strays) == 0 {
		return nil
	}
	return c.strays[id]
}

// flushFreed emits what the step forgot: the log's tombstone before what it allows.
func (c *Core) flushFreed() {
	if len(c.forgot) > 0 {
		c.logForget()
		c.forgot = c.forgot[:0]
	}
	if len(c.cookies) > 0 && !c.ended {
		c.effects = append(c.effects, Effect{Kind: LogFree, Cookies: &c.cookies})
	}
	c.flushFrees()
}
