package owner

import (
	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/internal/queue"
	"mobula/objectstore"
	"mobula/raylet/cluster"
	"mobula/raylet/owner/task"
	"mobula/wire"
)

// Core is the owner of one job, composed of its parts. Step it from one goroutine.
//
// Each part has state of its own and methods of its own. They are listed from the lowest to the highest. A part calls those
// before it directly, and asks those behind it by an interface that it declares and the Core satisfies: so each can be tested with the parts that it
// is made of alone.
type Core struct {
	*step
	*journal
	*tasks
	*copies
	*borrows
	*objects
	*clients
	*gets
	*promises
	*values
	*memory
	*leases
	*creates
	*streams
	*lineage
	*calls
	*actors
	*foreign
	*life
	*straight
	*deadlocks
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
	c.copies = newCopies(s, c.journal, c)
	c.borrows = newBorrows(s, c)
	c.objects = newObjects(s, c.journal, c.tasks, c.copies, c.borrows, c)
	c.clients = newClients(s)
	c.gets = &gets{step: s, copies: c.copies, borrows: c.borrows, objects: c.objects, clients: c.clients, up: c}
	c.promises = newPromises(s, c.objects, c)
	c.values = &values{step: s, journal: c.journal, tasks: c.tasks, copies: c.copies, objects: c.objects, clients: c.clients, up: c}
	c.memory = &memory{step: s, journal: c.journal, tasks: c.tasks, copies: c.copies, borrows: c.borrows, objects: c.objects, up: c}
	c.leases = newLeases(s, c.tasks, c.clients, c.promises, c.memory, c)
	c.creates = &creates{step: s, tasks: c.tasks, leases: c.leases}
	c.streams = &streams{step: s, journal: c.journal, tasks: c.tasks, objects: c.objects, values: c.values, leases: c.leases, up: c}
	c.lineage = &lineage{step: s, tasks: c.tasks, copies: c.copies, objects: c.objects, clients: c.clients, gets: c.gets, memory: c.memory, leases: c.leases, streams: c.streams, up: c}
	c.calls = &calls{step: s, tasks: c.tasks, objects: c.objects, memory: c.memory, leases: c.leases, up: c}
	c.actors = newActors(s, c.journal, c.tasks, c.objects, c.clients, c.leases, c.calls, c)
	c.foreign = &foreign{step: s, clients: c.clients, leases: c.leases, calls: c.calls, actors: c.actors}
	c.life = &life{step: s, journal: c.journal, tasks: c.tasks, objects: c.objects, clients: c.clients, promises: c.promises, values: c.values, memory: c.memory,
		leases: c.leases, streams: c.streams, lineage: c.lineage, calls: c.calls, actors: c.actors, foreign: c.foreign}
	c.straight = newStraight(s, c.journal, c.tasks, c.objects, c.clients, c.values, c.streams, c.calls, c.actors, c.life)
	c.deadlocks = newDeadlocks(s, c.tasks, c.objects, c.clients, c.leases, c.actors, c.life)
	c.deaths = &deaths{step: s, journal: c.journal, tasks: c.tasks, clients: c.clients, memory: c.memory, leases: c.leases, calls: c.calls, actors: c.actors, foreign: c.foreign, life: c.life}
	c.peers = newPeers(s, c.journal, c.copies, c.borrows, c.objects, c.clients, c)
	c.job = &job{step: s, journal: c.journal, tasks: c.tasks, copies: c.copies, borrows: c.borrows, objects: c.objects, clients: c.clients, gets: c.gets, leases: c.leases, streams: c.streams,
		actors: c.actors, foreign: c.foreign, life: c.life, straight: c.straight, deadlocks: c.deadlocks, deaths: c.deaths, peers: c.peers}
	c.recovery = &recovery{step: s, journal: c.journal, tasks: c.tasks, copies: c.copies, objects: c.objects, clients: c.clients, gets: c.gets, promises: c.promises, values: c.values,
		leases: c.leases, streams: c.streams, lineage: c.lineage, calls: c.calls, actors: c.actors, life: c.life, straight: c.straight, peers: c.peers, job: c.job, up: c}
	return c
}

// step is what every part has in common: the configuration, how far the job is, and the time and the output of the step under way.
type step struct {
	cfg   Config
	now   int64 // of the step, Unix ns
	epoch uint64

	recovering bool // waits for its clients to say what they hold
	lenient    bool // callers' sequences may begin anywhere: this core was rebuilt
	orphan     bool // the last driver is gone
	ended      bool // and with it the job: no detached actor is left
	stopped    bool // the node stops: nothing is taken in any more

	effects []Effect // the first logEffects are for the log
	changes []Transition
	stats   Counters
	timers  timerHeap
	armed   int64 // when the last After is due; 0: none
}

// journal writes the owner's log: it numbers the records, keeps where each went, and says which are not needed any more.
type journal struct {
	*step
	logs           []LogRecord
	logbuf         []byte
	forgot         []ids.ObjectID
	cookies        []*uint64
	records        uint64                       // numbers given out
	optNo          map[*wire.TaskOptions]uint32 // options in the log
	optKeys        map[string]uint32
	optByNo        map[uint32]*wire.TaskOptions
	optCookies     map[uint32]*uint64
	optLast        *wire.TaskOptions
	optLNo         uint32
	keyBuf         []byte
	packedAt       map[ids.ObjectID]*uint64 // of the records that say where the store has a packed value
	deadLog        []*uint64                // what a rebuilt core found in the log and has no use for
	tombs          queue.Queue[tomb]        // by number
	lapsed         []*uint64                // forget records, in this step
	forgotOfDriver bool                     // something in forgot was made by a driver
	sent           sentOnce                 // by the driver, in this life of the core
	fetches        map[uint64]*fetch
	token          uint64
}

func newJournal(s *step) *journal {
	return &journal{step: s, optNo: make(map[*wire.TaskOptions]uint32), optKeys: make(map[string]uint32), optByNo: make(map[uint32]*wire.TaskOptions),
		optCookies: make(map[uint32]*uint64), packedAt: make(map[ids.ObjectID]*uint64), fetches: make(map[uint64]*fetch)}
}

// tasks is the table of tasks: their records, states and timers, and what is to be looked at in this step. It knows no other part but the step.
type tasks struct {
	*step
	table
	byState     [16]int
	streamCount int                         // records of streaming tasks
	born        int64                       // of the task submitted last
	children    map[ids.TaskID][]ids.TaskID // of tasks that have not ended and submitted others, and of making
	readyQ      []*taskRec                  // whose last argument was resolved
	workQ       []*taskRec                  // to look at the arguments of
	restarting  *taskRec                    // the creation of an actor that was just moved to restarting
	reaped      []*taskRec                  // in this step
	elsewhere   int                         // adopted calls that are not the owner's to make
	settled     []ids.TaskID                // adopted calls that have ended, as straight is to hear
	unwanted    []unwanted                  // of those that are elsewhere, which were cancelled, as straight is to hear
	making      map[ids.TaskID]running      // calls of which the owner knows no more than that they have made something; nil: none
	tasksFree   []*taskRec
}

func newTasks(s *step) *tasks { return &tasks{step: s, children: make(map[ids.TaskID][]ids.TaskID)} }

// copies is on which nodes stored objects are. Of one that only the job's own node has, there is no entry.
type copies struct {
	*step
	journal  *journal
	up       copiesUp
	byID     map[ids.ObjectID]*copySet
	frees    []ids.ObjectID // on the job's own node
	freesAt  map[ids.Home][]ids.ObjectID
	alone    []ids.Home        // the job's own node
	known    map[ids.Home]int  // how many objects each other node knows of
	told     map[ids.Home]bool // the nodes of which who chooses nodes was told so
	opened   map[ids.Home]bool // the nodes of which it has answered that the job is open there
	expected map[ids.Home]bool // those of which it is yet to answer that
	changed  []ids.Home        // whose count may be zero now, or not any more
	doubts   map[ids.ObjectID]doubt
}

func newCopies(s *step, j *journal, up copiesUp) *copies {
	return &copies{step: s, journal: j, up: up, byID: make(map[ids.ObjectID]*copySet), freesAt: make(map[ids.Home][]ids.ObjectID), alone: []ids.Home{s.home()},
		known: make(map[ids.Home]int), told: make(map[ids.Home]bool), opened: make(map[ids.Home]bool), expected: make(map[ids.Home]bool), doubts: make(map[ids.ObjectID]doubt)}
}

// copiesUp knows the objects, and makes those again whose last copy is gone.
type copiesUp interface {
	object(id ids.ObjectID) *objRec
	objectLost(o *objRec, err *errs.Error)
}

// borrows is which stores know of objects of other jobs, as their owners have said, and who waits for that.
type borrows struct {
	*step
	up   borrowsUp
	byID map[ids.ObjectID]*borrowed
}

func newBorrows(s *step, up borrowsUp) *borrows {
	return &borrows{step: s, up: up, byID: make(map[ids.ObjectID]*borrowed)}
}

// borrowsUp looks again at what waited, and whether an object is still needed.
type borrowsUp interface {
	get(cl *clientRec, id ids.ObjectID, fetch bool)
	pinBrought(t *taskRec, gen uint32)
	recountBorrowed(id ids.ObjectID)
}

// objects is what the owner knows of objects: their states, who refers to them, and what is freed when nobody does. Those of other jobs
// that something here refers to are among them.
type objects struct {
	*step
	journal      *journal
	tasks        *tasks
	copies       *copies
	borrows      *borrows
	up           objectsUp
	puts         table                    // of Put
	placeholders map[ids.ObjectID]*objRec // referred to and unknown
	budget       budget
	transfers    map[transferID]refTransfer   // references on their way to other jobs
	dropped      map[ids.ObjectID]*errs.Error // see poisoned
	silent       map[ids.JobID]struct{}       // whose owners are to tell a rebuilt core what they have
	recountQueue []*objRec                    // that lost a reference
	keptValues   keptValues
	waitsFree    []*waits
}

func newObjects(s *step, j *journal, ts *tasks, cp *copies, br *borrows, up objectsUp) *objects {
	return &objects{step: s, journal: j, tasks: ts, copies: cp, borrows: br, up: up, placeholders: make(map[ids.ObjectID]*objRec), transfers: make(map[transferID]refTransfer),
		dropped: make(map[ids.ObjectID]*errs.Error), silent: make(map[ids.JobID]struct{})}
}

// objectsUp is what follows from what happens to an object.
type objectsUp interface {
	answer(cl *clientRec, o *objRec, fetch bool)
	waitGet(cl *clientRec, o *objRec, fetch bool)
	maybeUnneeded(o *objRec)
	taken(o *objRec)
	lastHandleReleased(a *actorRec)
	reap(t *taskRec)
}

// clients is the drivers and workers of the job, and the credit that they have for what they send.
type clients struct {
	*step
	byID       map[ids.ClientID]*clientRec
	lastClient *clientRec
	drivers    int
	creditors  []*clientRec
}

func newClients(s *step) *clients { return &clients{step: s, byID: make(map[ids.ClientID]*clientRec)} }

// gets answers clients that ask for objects, no faster than they read.
type gets struct {
	*step
	copies       *copies
	borrows      *borrows
	objects      *objects
	clients      *clients
	up           getsUp
	resolvedFree []wire.Resolved
}

// getsUp makes again what is asked for and gone.
type getsUp interface {
	remake(o *objRec) bool
	cannotRemake(o *objRec) *errs.Error
}

// promises is the results that tasks have promised and not submitted yet.
type promises struct {
	*step
	objects  *objects
	up       promisesUp
	open     map[ids.ObjectID]promise
	unneeded []promise // given up, and to be told
}

func newPromises(s *step, os *objects, up promisesUp) *promises {
	return &promises{step: s, objects: os, up: up, open: make(map[ids.ObjectID]promise)}
}

// promisesUp makes again what is promised and gone.
type promisesUp interface{ remake(o *objRec) bool }

// values takes what clients have written: puts, seals, the results of attempts.
type values struct {
	*step
	journal *journal
	tasks   *tasks
	copies  *copies
	objects *objects
	clients *clients
	up      valuesUp
}

// valuesUp makes the record of a stream's item.
type valuesUp interface {
	newItem(t *taskRec, i uint32) *objRec
}

// memory keeps the owner within its budget: it packs values into the store, pages specs out to the log, and makes up the arguments of tasks.
type memory struct {
	*step
	journal *journal
	tasks   *tasks
	copies  *copies
	borrows *borrows
	objects *objects
	up      memoryUp
	waiting taskList // tasks with large specs that wait for arguments
}

// memoryUp is what waits for memory.
type memoryUp interface {
	heaviestQueue() (k *classRec, queues int)
	keptLineage() *taskList
	touch(k *classRec)
	touchActor(a *actorRec)
	resequence(t *taskRec)
	fail(t *taskRec, err *errs.Error)
}

// leases is the scheduling classes and their leases: which task is pushed over which, how many more leases are wanted, which go back.
type leases struct {
	*step
	tasks      *tasks
	clients    *clients
	promises   *promises
	memory     *memory
	up         leasesUp
	byID       map[ids.LeaseID]*leaseRec
	pastLeases map[ids.LeaseID]struct{} // that ended, of a rebuilt core
	lastLease  *leaseRec
	classes    classTable
	wanting    int // classes that wait for leases
	keyBuf     []byte
	held       []cluster.Held // scratch of most
	dirtyClass []*classRec
	dirtyLease []*leaseRec
}

func newLeases(s *step, ts *tasks, cs *clients, ps *promises, ms *memory, up leasesUp) *leases {
	return &leases{step: s, tasks: ts, clients: cs, promises: ps, memory: ms, up: up, byID: make(map[ids.LeaseID]*leaseRec), classes: newClassTable()}
}

// leasesUp is what happens to the tasks of a lease, and to the actor that has one.
type leasesUp interface {
	touchActor(a *actorRec)
	waitsFor(t *taskRec, m *wire.Blocked)
	cancelling() bool
	fail(t *taskRec, err *errs.Error)
	unpush(t *taskRec)
	requeue(t *taskRec, front bool)
}

// creates is the tasks that have lent their CPU, since a create of theirs waits.
type creates struct {
	*step
	tasks  *tasks
	leases *leases
}

// streams is the items of streaming tasks: who reads them, how far, and what is lost.
type streams struct {
	*step
	journal     *journal
	tasks       *tasks
	objects     *objects
	values      *values
	leases      *leases
	up          streamsUp
	dirtyStream []*taskRec
}

// streamsUp is what a stream has done to its task.
type streamsUp interface {
	cancelTask(t *taskRec, force bool)
	chargeLoss(t *taskRec) bool
	requestEnd(t *taskRec)
	fail(t *taskRec, err *errs.Error)
	reap(t *taskRec)
}

// lineage keeps the specs of tasks that have ended, within a bound, and makes lost or dropped objects again by them.
type lineage struct {
	*step
	tasks   *tasks
	copies  *copies
	objects *objects
	clients *clients
	gets    *gets
	memory  *memory
	leases  *leases
	streams *streams
	up      lineageUp
	kept    taskList // tasks that ended and could run again, oldest first
	bytes   int64
}

// lineageUp charges the task that is to run again.
type lineageUp interface {
	charge(t *taskRec) bool
	chargeLoss(t *taskRec) bool
	requeue(t *taskRec, front bool)
	borrowedLost(o *objRec, node ids.Home, m objectstore.Lost)
}

// calls is the calls of actors: their order, one caller to one actor, and where they wait.
type calls struct {
	*step
	tasks      *tasks
	objects    *objects
	memory     *memory
	leases     *leases
	up         callsUp
	dirtyActor []*actorRec
}

// callsUp is the actors that are called, and the life of a call's task.
type callsUp interface {
	actorFor(id ids.ActorID) *actorRec
	maybeForgetForeign(a *actorRec)
	maybeStop(a *actorRec)
	setCause(a *actorRec, cause, hurt *errs.Error)
	charge(t *taskRec) bool
	requeue(t *taskRec, front bool)
	withdraw(t *taskRec)
	end(t *taskRec, ev task.Event, err *errs.Error)
	fail(t *taskRec, err *errs.Error)
	reap(t *taskRec)
}

// actors is the life of actors: named, made, restarted, stopped, watched.
type actors struct {
	*step
	journal          *journal
	tasks            *tasks
	objects          *objects
	clients          *clients
	leases           *leases
	calls            *calls
	up               actorsUp
	byID             map[ids.ActorID]*actorRec
	movedActor       []*actorRec
	touched          []*actorRec // whose instance straight is to look at
	claims           []*actorRec // which ask for their names at the step's end
	escalated        []escalation
	lastDetachedDied bool // a detached actor has died, and there is no driver
}

func newActors(s *step, j *journal, ts *tasks, os *objects, cs *clients, ls *leases, cc *calls, up actorsUp) *actors {
	return &actors{step: s, journal: j, tasks: ts, objects: os, clients: cs, leases: ls, calls: cc, up: up, byID: make(map[ids.ActorID]*actorRec)}
}

// actorsUp is the life of the task that creates an actor.
type actorsUp interface {
	await(t *taskRec)
	requeue(t *taskRec, front bool)
	withdraw(t *taskRec)
	fail(t *taskRec, err *errs.Error)
	afterEnd(t *taskRec)
	reap(t *taskRec)
}

// foreign is the actors of other jobs: where they are, and what becomes of the calls that were there.
type foreign struct {
	*step
	clients *clients
	leases  *leases
	calls   *calls
	actors  *actors
}

// life is the life of a task: submitted, waiting for its arguments, queued, run, tried again, cancelled, ended. It is above all parts that a task
// goes through, which ask for what it does by an interface of their own.
type life struct {
	*step
	journal  *journal
	tasks    *tasks
	objects  *objects
	clients  *clients
	promises *promises
	values   *values
	memory   *memory
	leases   *leases
	streams  *streams
	lineage  *lineage
	calls    *calls
	actors   *actors
	foreign  *foreign

	awaitsCalls bool       // a rebuilt core has not heard of the calls that others have: an argument may be the result of one
	unsure      []*taskRec // that have such an argument
}

// deaths decides what becomes of what ran in a worker's process that died, and who is charged for it.
type deaths struct {
	*step
	journal *journal
	tasks   *tasks
	clients *clients
	memory  *memory
	leases  *leases
	calls   *calls
	actors  *actors
	foreign *foreign
	life    *life
}

// peers is the owners of other jobs: clients of this one for its objects, and the ones to ask for theirs.
type peers struct {
	*step
	journal   *journal
	copies    *copies
	borrows   *borrows
	objects   *objects
	clients   *clients
	up        peersUp
	awaited   []bringing            // until the job is open on a node
	borrowers map[ids.JobID]*uint64 // jobs of other homes that may have objects of this one: the positions of their records

	handovers map[ids.JobID][]handover // by who is to answer, in the order asked
	syncs     uint64                   // that were asked for
	untold    []ids.JobID              // that a rebuilt core tells later what it has
	askedAll  bool                     // and has borrowed it anew
	leavers   []ids.JobID              // that end, and are not answered yet
	leaving   map[ids.JobID]bool       // who is to answer that this job may end; nil: it does not end yet
	leaveBy   int64                    // until when it waits for them
}

func newPeers(s *step, j *journal, cp *copies, br *borrows, os *objects, cs *clients, up peersUp) *peers {
	return &peers{step: s, journal: j, copies: cp, borrows: br, objects: os, clients: cs, up: up, borrowers: make(map[ids.JobID]*uint64), handovers: make(map[ids.JobID][]handover)}
}

// peersUp ends a client.
type peersUp interface{ clientGone(ev ClientGone) }

// job is the job as a whole: its drivers come and go, and what they leave behind is ended.
type job struct {
	*step
	journal   *journal
	tasks     *tasks
	copies    *copies
	borrows   *borrows
	objects   *objects
	clients   *clients
	gets      *gets
	leases    *leases
	streams   *streams
	actors    *actors
	foreign   *foreign
	life      *life
	straight  *straight
	deadlocks *deadlocks
	deaths    *deaths
	peers     *peers
	told      bool // JobEnded is out
	sweeps    queue.Queue[*sweep]
	sweeping  *timer // of the next slice
	sweepBuf  []*objRec
}

// recovery rebuilds a core from its log, and has its clients say the rest.
type recovery struct {
	*step
	journal  *journal
	tasks    *tasks
	copies   *copies
	objects  *objects
	clients  *clients
	gets     *gets
	promises *promises
	values   *values
	leases   *leases
	streams  *streams
	lineage  *lineage
	calls    *calls
	actors   *actors
	life     *life
	straight *straight
	peers    *peers
	job      *job
	up       recoveryUp
	pause    *resyncWait // waits for its clients
	resuming *resyncWait // has stepped what it had kept back, in this step
}

// recoveryUp steps what was kept back.
type recoveryUp interface {
	drain()
	eachContainer(f func(refs []ids.ObjectID))
	handle(ev Event)
	message(cl *clientRec, m wire.Msg)
}
