package graph

// State is the state of a task. The names are Dask's.
type State uint8

// The states.
const (
	Released   State = iota // not needed now or no longer needed; it can be made
	Waiting                 // needed; some input is not in memory
	NoWorker                // its inputs are there; no worker that may run it is
	Queued                  // a root task whose inputs are there, withheld until a worker has a slot for it
	Processing              // sent to a worker
	Memory                  // its result is on at least one worker
	Erred                   // it failed, or something that it needs did
	Forgotten               // nobody will ever need it again
	numStates
)

var stateNames = [numStates]string{"released", "waiting", "no-worker", "queued", "processing", "memory", "erred", "forgotten"}

// String names the state.
func (s State) String() string {
	if s < numStates {
		return stateNames[s]
	}
	return "invalid"
}

// active tells whether the task holds its inputs: it is needed and not made yet.
func (s State) active() bool { return s >= Waiting && s <= Processing }

// move is a cause of a state change.
type move uint8

const (
	onNeed    move = iota // someone needs its result
	onStrand              // ready, and no worker may run it
	onHold                // ready, and withheld
	onAssign              // given to a worker
	onRecheck             // an input or its worker was lost: its inputs are checked again
	onFinish              // done
	onDrop                // nobody needs it now
	onFail
	onForget
	onAdopt // a worker has its result from before Start
	numMoves
)

var moveNames = [numMoves]string{"need", "strand", "hold", "assign", "recheck", "finish", "drop", "fail", "forget", "adopt"}

func (m move) String() string {
	if m < numMoves {
		return moveNames[m]
	}
	return "invalid"
}

// illegal marks transitions that are not in the table; it is not a state.
const illegal = numStates

// table is the state machine. A result that is lost goes memory -> released (drop) -> waiting (need).
var table = func() (t [numStates][numMoves]State) {
	for s := range t {
		for m := range t[s] {
			t[s][m] = illegal
		}
	}
	t[Released][onNeed] = Waiting
	t[Released][onFail] = Erred
	t[Released][onForget] = Forgotten
	t[Released][onAdopt] = Memory
	for _, s := range []State{Waiting, NoWorker, Queued} {
		t[s][onStrand], t[s][onHold], t[s][onAssign], t[s][onRecheck] = NoWorker, Queued, Processing, Waiting
		t[s][onDrop], t[s][onFail] = Released, Erred
	}
	t[Processing] = [numMoves]State{
		onNeed: illegal, onStrand: illegal, onHold: illegal, onAssign: illegal, onForget: illegal, onAdopt: illegal,
		onRecheck: Waiting, onFinish: Memory, onDrop: Released, onFail: Erred,
	}
	t[Memory][onDrop] = Released
	t[Erred][onForget] = Forgotten
	return t
}()
