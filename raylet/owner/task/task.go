package task

// State is where a task stands.
type State uint8

// The states. A task that reached one of the last three is terminal until Rerun.
const (
	None         State = iota // not submitted
	PendingArgs               // some argument is not resolved yet
	PendingActor              // an actor call: waits for its turn, its actor, or its actor's window
	PendingNode               // waits for a lease
	PendingFetch              // has a lease; its stored arguments are being pinned
	PendingStore              // as PendingFetch, and the store said that it waits for room
	Backoff                   // waits before it runs again
	Submitted                 // pushed to a worker
	Running                   // the worker runs it, as far as the owner knows
	RunningInGet              // blocked in a get, its CPU given back
	Finished
	Failed
	Cancelled
	numStates
)

var names = [numStates]string{
	"NONE", "PENDING_ARGS_AVAIL", "PENDING_ACTOR_TASK_ORDERING_OR_CONCURRENCY", "PENDING_NODE_ASSIGNMENT",
	"PENDING_ARGS_FETCH", "PENDING_OBJ_STORE_MEM_AVAIL", "PENDING_RETRY", "SUBMITTED_TO_WORKER", "RUNNING",
	"RUNNING_IN_GET", "FINISHED", "FAILED", "CANCELLED",
}

// String is the name that lists show; the names are the field's.
func (s State) String() string {
	if s < numStates {
		return names[s]
	}
	return "INVALID"
}

// Parse reads what String printed.
func Parse(name string) (State, bool) {
	for i, n := range names {
		if n == name {
			return State(i), true
		}
	}
	return None, false
}

// States lists every state.
func States() []State {
	out := make([]State, numStates)
	for i := range out {
		out[i] = State(i)
	}
	return out
}

// Terminal tells whether the task has ended.
func (s State) Terminal() bool { return s >= Finished }

// OnWorker tells whether a worker has the task.
func (s State) OnWorker() bool { return s >= Submitted && s <= RunningInGet }

// Event is what moves a task.
type Event uint8

// The events.
const (
	Submit    Event = iota // the owner accepted the spec
	Ready                  // every argument is resolved (of a call: it may take its turn)
	ReadyCall              // the same, of an actor call
	Fetch                  // the stored arguments are asked for
	NoRoom                 // the store waits for room for them
	Push                   // sent to the worker
	Start                  // its lane is free for it
	Block                  // it waits in a get
	Unblock                // it goes on
	Requeue                // runs again: arguments are looked at anew
	Delay                  // runs again, later
	Finish
	Fail
	Cancel
	Rerun // a result was lost: runs again from lineage; of an actor's creation: the actor restarts
	numEvents
)

var eventNames = [numEvents]string{
	"submit", "ready", "ready-call", "fetch", "no-room", "push", "start", "block", "unblock", "requeue",
	"delay", "finish", "fail", "cancel", "rerun",
}

// String names the event.
func (e Event) String() string {
	if e < numEvents {
		return eventNames[e]
	}
	return "invalid"
}

// Events lists every event.
func Events() []Event {
	out := make([]Event, numEvents)
	for i := range out {
		out[i] = Event(i)
	}
	return out
}

// table is the machine; None is no transition.
var table = [numStates][numEvents]State{
	None:         {Submit: PendingArgs},
	PendingArgs:  {Ready: PendingNode, ReadyCall: PendingActor, Fail: Failed, Cancel: Cancelled},
	PendingActor: {Fetch: PendingFetch, Push: Submitted, Requeue: PendingArgs, Fail: Failed, Cancel: Cancelled},
	PendingNode:  {Fetch: PendingFetch, Push: Submitted, Requeue: PendingArgs, Fail: Failed, Cancel: Cancelled},
	PendingFetch: {NoRoom: PendingStore, Push: Submitted, Requeue: PendingArgs, Fail: Failed, Cancel: Cancelled},
	PendingStore: {Push: Submitted, Requeue: PendingArgs, Fail: Failed, Cancel: Cancelled},
	Backoff:      {Requeue: PendingArgs, Fail: Failed, Cancel: Cancelled},
	Submitted:    {Start: Running, Block: RunningInGet, Requeue: PendingArgs, Delay: Backoff, Finish: Finished, Fail: Failed, Cancel: Cancelled},
	Running:      {Block: RunningInGet, Requeue: PendingArgs, Delay: Backoff, Finish: Finished, Fail: Failed, Cancel: Cancelled},
	RunningInGet: {Block: RunningInGet, Unblock: Running, Requeue: PendingArgs, Delay: Backoff, Finish: Finished, Fail: Failed, Cancel: Cancelled},
	Finished:     {Rerun: PendingArgs, Delay: Backoff},
}

// Next gives the state after e, or false where the table has no such transition.
func Next(s State, e Event) (State, bool) {
	if s >= numStates || e >= numEvents {
		return None, false
	}
	to := table[s][e]
	return to, to != None
}
