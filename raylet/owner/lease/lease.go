package lease

// State is what the owner may do with a lease.
type State uint8

// The states.
const (
	None     State = iota
	Active         // tasks are pushed over it
	Blocked        // its task waits in a get: nothing is pushed, the CPU is given back
	Resuming       // its task asked for the CPU again
	Closing        // asked back or its worker drains: returned once what was pushed is done
	Actor          // the lifetime lease of an actor
	Lost           // revoked, or its worker's connection ended; what ran on it is about to be settled
	Ended
	numStates
)

var names = [numStates]string{"NONE", "ACTIVE", "BLOCKED", "RESUMING", "CLOSING", "ACTOR", "LOST", "ENDED"}

// String is the name that lists show.
func (s State) String() string {
	if s < numStates {
		return names[s]
	}
	return "INVALID"
}

// Event is what moves a lease.
type Event uint8

// The events.
const (
	Grant   Event = iota // the scheduler gave it
	Block                // its task waits in a get
	Unblock              // the task goes on
	Resume               // the scheduler gave the CPU again
	Close                // the scheduler wants it back, or its worker drains
	Up                   // it is an actor's now
	Lose                 // its worker is gone
	End                  // it was returned, or settled after its loss
	numEvents
)

var eventNames = [numEvents]string{"grant", "block", "unblock", "resume", "close", "up", "lose", "end"}

// String names the event.
func (e Event) String() string {
	if e < numEvents {
		return eventNames[e]
	}
	return "invalid"
}

// table is the machine. A lease that is asked back while its task waits in a get stays in
// that state, its record remembers, and it closes when the task has gone on, or has ended
// without doing so.
var table = [numStates][numEvents]State{
	None:     {Grant: Active},
	Active:   {Block: Blocked, Close: Closing, Up: Actor, Lose: Lost, End: Ended},
	Blocked:  {Unblock: Resuming, Close: Closing, Lose: Lost, End: Ended},
	Resuming: {Resume: Active, Close: Closing, Lose: Lost, End: Ended},
	Closing:  {Block: Blocked, Up: Actor, Lose: Lost, End: Ended},
	Actor:    {Lose: Lost, End: Ended},
	Lost:     {End: Ended},
}

// Next gives the state after e, or false where the table has no such transition.
func Next(s State, e Event) (State, bool) {
	if s >= numStates || e >= numEvents {
		return None, false
	}
	to := table[s][e]
	return to, to != None
}
