package object

// State is what the owner knows of an object's value.
type State uint8

// The states.
const (
	Pending State = iota // its task has not made it yet, or makes it again
	Inline               // the owner holds the bytes
	Stored               // the store holds the bytes
	Failed               // an error stands for it
	Freed                // its value was dropped: nobody refers to it, lineage may
	numStates
)

var names = [numStates]string{"PENDING", "INLINE", "STORED", "ERROR", "FREED"}

// String is the name that lists show.
func (s State) String() string {
	if s < numStates {
		return names[s]
	}
	return "INVALID"
}

// Resolved tells whether a get can be answered.
func (s State) Resolved() bool { return s == Inline || s == Stored || s == Failed }

// Event is what moves an object.
type Event uint8

// The events.
const (
	SetInline Event = iota // a value came inside a message
	SetStored              // a sealed extent was accepted
	SetError               // an error stands for it
	Pack                   // the value was moved into the store
	Lose                   // the store has no copy; it is made again
	Drop                   // no reference is left
	Remake                 // a freed value is needed again by lineage
	numEvents
)

var eventNames = [numEvents]string{"set-inline", "set-stored", "set-error", "pack", "lose", "drop", "remake"}

// String names the event.
func (e Event) String() string {
	if e < numEvents {
		return eventNames[e]
	}
	return "invalid"
}

const illegal = numStates

// table is the machine. One attempt is accepted: a resolved object is not set again.
var table = [numStates][numEvents]State{
	Pending: {Inline, Stored, Failed, illegal, illegal, Freed, illegal},
	Inline:  {illegal, illegal, illegal, Stored, illegal, Freed, illegal},
	Stored:  {illegal, illegal, Failed, illegal, Pending, Freed, illegal},
	Failed:  {illegal, illegal, illegal, illegal, illegal, Freed, illegal},
	Freed:   {illegal, illegal, illegal, illegal, illegal, illegal, Pending},
}

// Next gives the state after e, or false where the table has no such transition.
func Next(s State, e Event) (State, bool) {
	if s >= numStates || e >= numEvents {
		return s, false
	}
	to := table[s][e]
	return to, to != illegal
}
