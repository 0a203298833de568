package actor

// State is where an actor stands.
type State uint8

// The states.
const (
	None       State = iota
	Claiming         // its name is being claimed
	Creating         // its creation waits or runs, for the first time
	Alive            // a worker has it
	Restarting       // its process died, a call panicked, or it was killed to restart; its creation runs again
	Dead             // for good
	Alias            // the name was taken and the creation asked for the one that has it
	Locating         // another job's actor: where it runs is being asked
	Stopping         // it takes no calls; its worker closes it
	numStates
)

var names = [numStates]string{"NONE", "PENDING_NAME", "PENDING_CREATION", "ALIVE", "RESTARTING", "DEAD", "ALIAS", "LOCATING", "STOPPING"}

// String is the name that lists show.
func (s State) String() string {
	if s < numStates {
		return names[s]
	}
	return "INVALID"
}

// Event is what moves an actor.
type Event uint8

// The events.
const (
	Create   Event = iota // an anonymous actor's creation was submitted
	Claim                 // a named one's was
	Claimed               // the name is ours
	Existing              // another actor has the name, and that one was asked for
	Up                    // its constructor returned, or its place is known
	Restart               // its process died, a call panicked, or it was killed to come back
	Die                   // for good
	Locate                // a call to another job's actor
	Stop                  // its calls have ended, and its worker is to close it
	numEvents
)

var eventNames = [numEvents]string{"create", "claim", "claimed", "existing", "up", "restart", "die", "locate", "stop"}

// String names the event.
func (e Event) String() string {
	if e < numEvents {
		return eventNames[e]
	}
	return "invalid"
}

var table = [numStates][numEvents]State{
	None:       {Create: Creating, Claim: Claiming, Locate: Locating},
	Claiming:   {Claimed: Creating, Existing: Alias, Die: Dead},
	Creating:   {Up: Alive, Restart: Restarting, Die: Dead},
	Alive:      {Restart: Restarting, Die: Dead, Stop: Stopping},
	Stopping:   {Die: Dead},
	Restarting: {Up: Alive, Restart: Restarting, Die: Dead},
	Locating:   {Up: Alive, Restart: Restarting, Die: Dead},
}

// Next gives the state after e, or false where the table has no such transition.
func Next(s State, e Event) (State, bool) {
	if s >= numStates || e >= numEvents {
		return None, false
	}
	to := table[s][e]
	return to, to != None
}
