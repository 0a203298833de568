package member

// State is where a client stands.
type State uint8

// The states.
const (
	Joined State = iota
	Ended        // its process has ended; what it sent before is still read
	Left         // it uses the node no more; the process may still read what it pinned
	Gone         // nothing of it is read any more
)

// Event is what a client's component steps on.
type Event uint8

// The events.
const (
	Watch  Event = iota // the component begins
	Leaves              // the connection ended, or the client said goodbye
	Done                // after a goodbye the connection ended too: the client reads nothing any more
	Exited              // the process did
)

// Effect is what it asks for.
type Effect uint8

// The effects.
const (
	AwaitExit  Effect = iota // wait for the process' end
	EndReading               // end the connection behind what was sent: a child of the process may hold it open
	TellPeers                // owners, pool and monitor: the client is gone
	DropPins                 // the store: nothing of the client's is read any more
	Stop                     // the component's work is done
)

// Core is the logic: two facts, told in this order, once each.
type Core struct{ state State }

// steps is the whole of it: state, event, next state, effects.
var steps = map[State]map[Event]struct {
	next State
	do   []Effect
}{
	Joined: {
		Watch:  {Joined, []Effect{AwaitExit}},
		Leaves: {Left, []Effect{TellPeers}},
		Done:   {Joined, nil}, // a goodbye comes first
		Exited: {Ended, []Effect{EndReading}},
	},
	Ended: {
		Watch:  {Ended, nil},
		Leaves: {Gone, []Effect{TellPeers, DropPins, Stop}},
		Done:   {Ended, nil}, // likewise
		Exited: {Ended, nil},
	},
	Left: {
		Watch:  {Left, nil},
		Leaves: {Left, nil},
		Done:   {Gone, []Effect{DropPins, Stop}},
		Exited: {Gone, []Effect{DropPins, Stop}},
	},
	Gone: {Watch: {Gone, nil}, Leaves: {Gone, nil}, Done: {Gone, nil}, Exited: {Gone, nil}},
}

// Step handles one event.
func (c *Core) Step(_ int64, ev Event) []Effect {
	step := steps[c.state][ev]
	c.state = step.next
	return step.do
}
