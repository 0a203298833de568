package client

import (
	"context"
	"sync/atomic"

	"mobula/internal/ids"
	"mobula/internal/inbox"
	"mobula/wire"
)

// Blocker is told when a task's code waits. The worker's executor installs one, so that a waiting task gives its
// CPU back.
type Blocker interface {
	// Blocked says that a goroutine of the task begins to wait: until ctx ends, or if waitsFor names objects, until it has
	// all of them. It does not block.
	Blocked(ctx context.Context, waitsFor []ids.ObjectID)
	// Unblocked says that it goes on; it returns once the task may run again, or when
	// ctx ends.
	Unblocked(ctx context.Context)
}

// Hosted is an instance of an actor in this process.
type Hosted struct {
	Actor    ids.ActorID
	Instance ids.LeaseID
	Life     <-chan struct{} // closed when the actor should end in this process
}

// TaskContext is the task on whose behalf code runs. The ids of what it submits and puts follow from it. Its
// methods are safe for concurrent use.
type TaskContext struct {
	Client   *Client
	Task     ids.TaskID
	Attempt  uint32
	Once     bool // it never runs again: what it calls goes straight
	Straight bool // it is a call that has come straight: the owner does not know it
	Trace    wire.TraceContext
	making   atomic.Uint32   // of a call that has come straight, what the owner was told of it, as straight_making.go has it; here it fits in the padding
	Spec     *wire.TaskSpec  // nil for the driver's own code
	Hosted   *Hosted         // in a call or the constructor of an actor: the instance; else nil
	Blocker  Blocker         // nil: nobody is told
	Own      context.Context // the context that its code was given; its end cancels no calls; nil: none that ends

	Unneeded *inbox.Inbox[uint32] // numbers of promised results (wire.TaskSpec.Promises) that nobody can ask for any more; nil: it promised none

	calls atomic.Uint64

	orders callOrders
}

// Giver is a context that gives a token when it ends, to one who waits for that: so it makes no channel for a wait that is over soon.
type Giver interface {
	// Gives has a token given, until GivesNoMore. The end of base, too, is the end of the context. False: who waits has to wait for Done.
	Gives(t *Token) (base <-chan struct{}, ok bool)
	GivesNoMore()
}

// Base is the id from which the ids of everything that the task makes follow, and by which its owner knows the task. A call from
// another job makes things for the actor's job: their ids say so, and they stay when the caller's job has ended.
func (tc *TaskContext) Base() ids.TaskID {
	if job := tc.Client.cfg.Welcome.Job; job != 0 {
		return tc.Task.In(job)
	}
	return tc.Task
}

// NextTask is the id of the next task that this one submits.
func (tc *TaskContext) NextTask() ids.TaskID { return ids.Derive(tc.Base(), tc.calls.Add(1)) }

// NextPut is the id of the next object that this task puts.
func (tc *TaskContext) NextPut() ids.ObjectID { return tc.Base().Put(tc.orders.puts.Add(1)) }

type taskKey struct{}

// TaskKey is the key under which a context that implements Value itself answers with
// its *TaskContext.
var TaskKey any = taskKey{}

// WithTask gives a context that carries tc.
func WithTask(ctx context.Context, tc *TaskContext) context.Context {
	return context.WithValue(ctx, TaskKey, tc)
}

// FromContext is the task that ctx belongs to, or nil.
func FromContext(ctx context.Context) *TaskContext {
	tc, _ := ctx.Value(TaskKey).(*TaskContext)
	return tc
}
