package owner

import (
	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/raylet/owner/actor"
	"mobula/raylet/owner/record"
	"mobula/raylet/owner/task"
	"mobula/wire"
)

// actorRec is one actor: of this job, with the task that creates it, or of another job,
// to which only calls are made from here.
type actorRec struct {
	id        ids.ActorID
	rec       *taskRec          // its creation; nil: another job's
	opts      *wire.TaskOptions // of its creation; nil while another job's is being located
	state     actor.State
	alias     *actorRec // state Alias: the actor that has the name
	lease     *leaseRec // while alive
	callers   map[ids.TaskID]*callerRec
	last      *callerRec
	parent    ids.ActorID     // where it or its panics escalate: the actor that has created it
	hurt      *errs.Error     // the failure of a child while its constructor ran; the log has it
	uncharged bool            // its last restart
	queue     taskList        // calls whose turn it is, in the order they are pushed
	pending   int             // calls that have not ended
	restarts  int32           // that were charged
	resets    int32           // restarts that were not: another brought its process down
	streak    int             // restarts in a row, for their back-off
	upAt      int64           // when it was last made, Unix ns; 0: it is not up
	lostLease ids.LeaseID     // of its last instance
	inquiry   *culpritInquiry // nil: nobody asks who is to be charged for its last death
	dirty     bool
	forgot    bool        // some of its callers
	claimed   bool        // its name is registered
	said      *ActorAt    // another job's, its owner's word that is put off; nil: none
	doubt     bool        // another job's, and calls for it may have run that a lost core had pushed
	unreached *errs.Error // another job's, why it cannot be called; until the next call asks again
	cause     *errs.Error
	stop      *errs.Error // why it is to end after its calls; nil: it is not
	closing   *timer      // of its close hook, while it is Stopping
	watchers  []watcher
	moved     bool          // in this step, and its watchers are to hear
	touched   bool          // in actors.touched
	shown     shownInstance // the last that straight was told
	passed    bool          // calls may have gone straight to it
	loggedAt  uint64        // log position of its last record
	logged    *record.Actor // what the log of a rebuilt core says
}

// newActor makes the record of the actor that a task creates.
func newActor(t *taskRec) *actorRec {
	return &actorRec{id: ids.ActorID(t.id()), rec: t, opts: t.spec.Opts}
}

// shownInstance is what is known of an actor to those who call it past the owner.
type shownInstance struct {
	id   ids.LeaseID // 0: there is none now
	host *clientRec
	dead bool
}

// escalation is a failure that a parent is to be charged with. It waits for the end of what the step is at: parent and
// child may have died together.
type escalation struct {
	to  ids.ActorID
	err *errs.Error
}

// watcher is a client that watches an actor, and the id that it has of it: an alias' own, maybe.
type watcher struct {
	client *clientRec
	as     ids.ActorID
}

// callerRec keeps the calls of one caller to one actor in order: a call whose arguments
// are not there yet, or whose predecessor has not come, holds up those after it.
type callerRec struct {
	id    ids.TaskID
	actor *actorRec
	next  uint64              // the sequence number whose turn it is
	wait  taskList            // by sequence number
	gap   *timer              // runs while the first of wait is not next
	ended map[uint64]struct{} // numbers behind next whose calls have ended without a turn
}

// deadActor is an actor of a process that died.
type deadActor struct {
	a     *actorRec
	lease ids.LeaseID
	calls []*taskRec // that were on it and had not ended
	ran   bool       // one of them, or one of another job, was not waiting for something
}

// culpritInquiry waits for the word of other jobs about a death for which nobody is known to be charged.
type culpritInquiry struct {
	of       []*actorRec
	suspects []*actorRec
}

// ranCalls tells whether a call of an actor may have run code.
func (l *leaseRec) ranCalls() bool {
	return l.otherJobsCalls || l.lane.contains(func(t *taskRec) bool { return alive(t) && t.state != task.RunningInGet })
}
