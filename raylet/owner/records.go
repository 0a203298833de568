package owner

import (
	"cmp"
	"slices"
	"time"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/internal/queue"
	"mobula/objectstore"
	"mobula/raylet/owner/lease"
	"mobula/raylet/owner/object"
	"mobula/raylet/owner/task"
	"mobula/raylet/sched"
	"mobula/wire"
)

// objRec is one object. That of a task's first return lies in the task's record; there is
// one such record a task, so its size is what a queued task costs. Three kinds of count
// keep the value: who has a handle, which live specs use it, which live objects contain it.
// A fourth, lineage, keeps only the means to make it again.
type objRec struct {
	id      ids.ObjectID
	state   object.State
	flags   objFlags
	remakes uint32        // keptValues.losses, one more, when all that makes it again was there; it takes no room beside flags
	rec     *taskRec      // that makes it; nil: a put, or a placeholder
	res     *wire.Result  // immutable; nil until resolved and after the drop
	waits   *waits        // nil: nobody waits
	holder  *clientRec    // the first client with a handle
	more    *[]*clientRec // further ones
	tasks   uint32        // uses by specs of tasks that have not ended
	objs    uint32        // live objects, errors of streams and of actors that contain it, and streams that hold it as an item
	lineage uint32        // uses by specs kept as lineage
	attempt uint32        // that was accepted, where state is Stored
	cookie  uint64        // log position of a put, an early seal or a stream item
}

type objFlags uint16

const (
	objRecount     objFlags = 1 << iota // in objects.recountQueue
	objDead                             // out of scope and no longer counted in taskRec.live
	objPlaceholder                      // referred to, but unknown: it was freed, or is another job's (objBorrowed)
	objArgErr                           // its error came from an argument and names it already
	objPacking                          // a Pack is under way
	objHeld                             // an item held by its stream: counted in objs
	objHandedOut                        // an item that a reader was given
	objLogged                           // a record of its own is in the log
	objPacked                           // the store has it through Pack: the log has the bytes too
	objGet                              // its first holder waits for it: most gets, which so need no waits
	objGetFetch                         // and asked to fetch
	objCold                             // was in the list of values to be packed, and may be still
	objPromised                         // in promises.open
	objBorrowed                         // a placeholder: another job's
	objAsked                            // a foreign one: its owner was asked for it
	objOfDriver                         // a put, or the first return of a task, that a driver made, and may send again after a restart of the node
)

// held tells whether the value is needed.
func (o *objRec) held() bool { return o.holder != nil || o.tasks+o.objs > 0 }

// waits are those that wait for an object, but for a get of its first holder. They are used again.
type waits struct {
	tasks []taskWait
	gets  []getWait
}

// taskWait is stale, and skipped, when the task has moved on to another generation.
type taskWait struct {
	t   *taskRec
	gen uint32
}

type getWait struct {
	client *clientRec
	fetch  bool
}

// taskRec is one task from its submission until nothing refers to its results.
type taskRec struct {
	ret0 objRec // ret0.id.Task is the task's id, also of a task without returns

	spec       *wire.TaskSpec // nil: paged out to the log at cookie; or without its inline values (extra.trimmed)
	class      *classRec      // nil: an actor call
	actor      *actorRec      // of a creation and a call
	lease      *leaseRec      // while a worker has it, or arguments are pinned for one
	in         *taskList
	next, prev *taskRec
	x          *extra // nil: nothing out of the ordinary

	born               int64  // when it was submitted, Unix ns; no two tasks of a job have the same
	since              int64  // of its state, Unix ns
	cookie             uint64 // log position of its submission
	doneAt             uint64 // log position of its end
	nret               int32  // returns; wire.Streaming: a stream
	live               uint32 // returns, items and stream handles that are not dead
	deps               uint32 // arguments it waits for
	gen                uint32 // counts the times it waited, so that old waits are known
	start              uint32 // attempt numbers given out
	tries              uint32 // attempts charged
	begun              uint32 // when it came, in ticks
	state              task.State
	detachedDescendant bool // who submitted it belongs to a detached actor
	flags              taskFlags
}

// tick is the unit of taskRec.begun: what lasts less than half a day is known by the difference, whatever was cut off.
const tick = 10 * time.Microsecond

func ticks(now int64) uint32 { return uint32(now / int64(tick)) }

type taskFlags uint16

const (
	taskHolds       taskFlags = 1 << iota // counted in tasks of the objects it uses
	taskLineage                           // counted in lineage of the objects it uses
	taskCancelled                         // a cancel was asked for
	taskFront                             // goes to the head of its queue
	taskPinned                            // arguments are pinned, or being pinned, under this attempt
	taskIsolated                          // runs in a process of its own until it is cleared
	taskAdopted                           // after a restart: a worker has it
	taskEvicted                           // its lineage was given up for want of room
	taskCounted                           // in its class's live count
	taskTurn                              // an actor call that had its turn: its order is settled
	taskHasChildren                       // tasks.children has an entry
	taskFetching                          // its spec is being read back
	taskReaped                            // no longer in the table
	taskWaitsName                         // a creation whose name is being claimed
	taskEnded                             // a record of its end is in the log
	taskOnce                              // it ended, and has no retries that could make its results again
)

// extra is what few tasks have.
type extra struct {
	more            []objRec // returns after the first
	stream          *streamRec
	adopted         *adoptedCall // nil: it was submitted, as nearly all are
	deadline        int64        // of its spec, kept where that is paged out; 0: none
	timer           *timer       // deadline, backoff or grace
	group           *group
	retryAt         uint64    // log position of what it was charged
	closedAt        uint64    // log position of that nobody reads its stream
	ends            []*uint64 // log positions of ends after the first, which have results that it lacks
	packed          bool      // journal.packedAt has some of its objects
	trimmed         int64     // bytes of its spec's inline values, which are paged out; 0: they are there
	isolatedClass   *classRec // the isolated class it runs in
	errors          uint32    // attempts charged for errors of its own, where these are counted apart from tries
	ooms            uint8
	held            heldAs // of a call
	forceAfterGrace bool   // it was cancelled, and is to be by force after a grace
	peak            uint64
	err             *errs.Error // why it was requeued last, or ended

	promises         []uint32       // of its spec, kept where that is paged out
	unneeded         int            // of them, given up
	waitsFor         []ids.ObjectID // all of which its get needs, as far as it told
	rerunRequested   bool           // when it has ended it is to run once more: promises that were given up are needed
	restartRequested bool           // a stream: its attempt was told to end, for another to begin
}

func (t *taskRec) id() ids.TaskID { return t.ret0.id.Task }

func (t *taskRec) ext() *extra {
	if t.x == nil {
		t.x = new(extra)
	}
	return t.x
}

// ret gives the i-th return, or nil. Of a stream, the i-th item that exists.
func (t *taskRec) ret(i uint32) *objRec {
	if t.nret == wire.Streaming {
		return t.x.stream.item(i)
	}
	switch {
	case i >= uint32(t.nret):
		return nil
	case i == 0:
		return &t.ret0
	}
	return &t.x.more[i-1]
}

// isCreation tells whether the task creates an actor.
func (t *taskRec) isCreation() bool { return t.actor != nil && t.actor.rec == t }

// isCall tells whether the task is a call of an actor's method.
func (t *taskRec) isCall() bool { return t.actor != nil && t.actor.rec != t }

// name is what messages call the task.
func (t *taskRec) name() string {
	if t.spec != nil {
		return cmp.Or(t.spec.Opts.Label, t.spec.Opts.Func)
	}
	if t.class != nil {
		return t.class.opts.Func
	}
	return "task"
}

// clientRec is a driver or a worker.
type clientRec struct {
	id             ids.ClientID
	role           wire.Role
	handles        int         // objects it holds
	leases         []*leaseRec // on it
	gone           bool
	joined         bool
	straight       bool      // it takes part in calls that go straight
	ofOtherJob     bool      // another job's worker
	peer           ids.JobID // another job's owner; 0: a process
	reported       bool      // it has told a rebuilt core what it has
	drainRequested bool      // asked to be drained: what dies with it is not charged
	lostErr        *errs.Error
	peak           uint64
	settle         *timer
	used           int64 // credit to give back
	window         sendWindow
}

// leaseRec is a lease that the scheduler granted.
type leaseRec struct {
	id             ids.LeaseID
	class          *classRec
	worker         *clientRec
	actor          *actorRec // whose lifetime lease it is
	state          lease.State
	closing        bool // asked back
	slow           bool // its task takes long: nothing is to wait behind it
	otherJobsCalls bool // another job had calls on its actor when its process died
	lent           bool // the scheduler was told that its CPU is given back, by this core
	dirty          bool
	ask            sched.Ask // of the last UnblockCPU
	lane           lane
	held           int             // the first of lane, which wait for the word of what becomes of their actor
	headSince      int64           // when the first of the lane began, as far as is known here
	fetching       []*taskRec      // arguments being pinned
	out            []wire.ExecTask // to be pushed when the step ends
	creates        []ids.TaskID    // tasks that wait for the CPU to go on with a create
	in             *leaseList      // of its class's, by what it has to do; nil: it has no room
	prev, next     *leaseRec
	idleAt         int64
	idle           *timer
	word           *timer // of another job's actor that is not there any more; nil: it is there
}

func (l *leaseRec) load() int { return l.lane.Len() + len(l.fetching) }

// classRec is a scheduling class: the tasks that one lease can run.
type classRec struct {
	id            sched.Class
	key           string
	kind          wire.TaskKind
	opts          *wire.TaskOptions
	ready         taskList
	largestPaged  int64 // bytes of the largest spec that was paged out as a whole
	leases        []*leaseRec
	idle          leaseList  // of them, with nothing to do
	spare         leaseList  // whose pipeline has run down
	local         int        // of them, on the job's own node
	passed        int        // tasks that went before the first of ready, since they were nearer
	far           ids.TaskID // the task that waits for a lease where its arguments are
	farSince      int64
	idles         bool // leases have nothing to do, because tasks wait for others
	idlesSince    int64
	barren        map[ids.Home]int64 // until when nothing waits for a lease on a node, since the last wait for one was for nothing
	near          *timer             // it may go elsewhere
	spread        *spreading         // nil: its tasks are not to be spread, or nothing is known of nodes
	located       bool               // the nodes that have arguments were told
	lastWant      int                // the last Want, less the leases granted since
	wantSent      bool               // the last Want was not 0
	runTime                          // of all its tasks
	labels        labelTimes         // of those with a label
	dirty         bool
	isolated      bool         // one task a process
	forgotten     bool         // no longer in the table
	live          int          // tasks that have not ended
	readaheadSent []ids.TaskID // whose arguments were named to the store, the latest
	infeasible    *errs.Error
}

// group is the tasks that ran in a shared process when it died.
type group struct {
	members []*taskRec
	found   bool // the culprit is known
}

// streamRec is a task's stream. The stream holds its items until a client has taken a
// handle on them; it is open until its readers have its end, it was cancelled, or nobody reads it.
type streamRec struct {
	items    []*objRec // by index; nil: not made yet
	produced uint32    // items announced
	consumed uint32    // the highest item handed out, plus one
	length   int64     // of a run that finished; -1: none has
	err      *errs.Error
	readers  []*clientRec // who submitted it, and who has asked for an item
	anyone   bool         // after a restart, among clients that do not tell: who reads it is not known
	closed   bool
	dirty    bool
	attempt  uint32 // that announced the last item
	sent     uint32 // items that it has announced
	holes    bool   // an item may be missing that was there
	owed     bool   // a run, without charge: see chargeLoss
	waits    []streamWait
}

type streamWait struct {
	client *clientRec
	index  uint32
	leaves bool // it says when it has the end or an error
}

func newStream() *streamRec { return &streamRec{length: -1} }

// sendWindow is what concerns a client's answers.
type sendWindow struct {
	bytes int64                           // sent, and not known to be on their way
	fresh int64                           // of these, of which no Receipt was asked yet
	later map[ids.ObjectID]deferredAnswer // put off
	queue queue.Queue[ids.ObjectID]       // of later, in order; one that is not there any more was withdrawn
}

// deferredAnswer counts what was put off.
type deferredAnswer struct{ plain, fetch int32 }

// sweep takes the handles of a client that is gone, or cancels the tasks that a job's last driver
// has left.
type sweep struct {
	client      *clientRec // nil: tasks are cancelled
	tasks, puts cursor     // puts are not looked at for a cancel
}

// fetch is a record being read back from the log.
type fetch struct {
	task *taskRec
	obj  *objRec
	left []*uint64 // where an object's value may be as well: it may have been made more than once, and elsewhere each time
}

// transferID names references that are on their way to a job: tokens are of that job's home.
type transferID struct {
	to    ids.JobID
	token uint64
}

// refTransfer is what is held for references that are on their way.
type refTransfer struct {
	refs []ids.ObjectID
	old  bool // they were sent to a life of the job's home that is over: once the job has told what it holds they have arrived, or never do
}

// promise is one that is neither broken nor given up. Its object is in the tables, and marked.
type promise struct {
	by *taskRec
	n  uint32
}

// resyncWait is a rebuilt core's wait for its clients. Who holds which handle, waits for what
// and runs which task is not in the log: the clients say. Until each has, nothing may be
// freed and nothing started.
type resyncWait struct {
	started bool
	epoch   uint64
	jobs    []ids.JobID // the others
	nodes   []ids.Home  // the others that live
	waiting map[ids.ClientID]bool
	told    map[ids.ClientID]bool // to go: what they say is heard no more
	held    []Event
	at      int // of held, the one being stepped; -1: none
	timer   *timer

	forgotten [][]ids.ObjectID // by the log, as its Forget records name it
	attempts  []heldAttempt    // that workers have still

	adopters map[ids.ClientID]bool // whose calls were taken before all else they say
}

// heldAttempt is an attempt that a worker of a node has.
type heldAttempt struct {
	node ids.Home
	objectstore.UnpinArgs
}

func newResyncWait() *resyncWait {
	return &resyncWait{waiting: make(map[ids.ClientID]bool), told: make(map[ids.ClientID]bool), at: -1}
}

// timer is an entry of the heap. The shell knows one time only: the earliest.
type timer struct {
	at      int64 // Unix ns
	i       int   // in the heap; -1: it was taken off
	kind    timerKind
	task    *taskRec
	lease   *leaseRec
	client  *clientRec
	caller  *callerRec
	inquiry *culpritInquiry
	actor   *actorRec
	class   *classRec
	lost    *objectstore.Lost
	bring   *bringing
}

func (s *streamRec) item(i uint32) *objRec {
	if int64(i) >= int64(len(s.items)) {
		return nil
	}
	return s.items[i]
}

func (s *streamRec) eachItem(f func(*objRec)) {
	for _, o := range s.items {
		if o != nil {
			f(o)
		}
	}
}

// takeGet takes the get of the first holder back, and is false if it has none.
func (o *objRec) takeGet() (fetch, ok bool) {
	fetch, ok = o.flags&objGetFetch != 0, o.flags&objGet != 0
	o.flags &^= objGet | objGetFetch
	return fetch, ok
}

// ungetAll takes a client's gets of an object back.
func (o *objRec) ungetAll(cl *clientRec) {
	if o.holder == cl {
		o.takeGet()
	}
	if o.waits != nil {
		o.waits.gets = slices.DeleteFunc(o.waits.gets, func(g getWait) bool { return g.client == cl })
	}
}

// deadlineAt is 0 for a task without a deadline.
func (t *taskRec) deadlineAt() int64 {
	if t.x == nil {
		return 0
	}
	return t.x.deadline
}

func errorResult(err *errs.Error) *wire.Result {
	if err == nil {
		err = errs.New(errs.CodeUnknown, "it failed, and no reason was given")
	}
	return &wire.Result{Kind: wire.ResultError, Err: err}
}

// maxReturns bounds the returns of one task, and the items of a stream; fewReturns may be announced whatever the budget is.
const maxReturns, fewReturns = 1 << 20, 1 << 10
