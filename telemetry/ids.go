package telemetry

import (
	"encoding/binary"

	"mobula/internal/ids"
)

// Phase is a part of a task's life with a span of its own.
type Phase uint8

// The phases, in the order in which a task usually goes through them. Their spans are
// siblings below PhaseTask's, one after the other without gaps; PhaseBlocked's are below
// PhaseRun's.
const (
	PhaseTask    Phase = iota // all of them
	PhaseSubmit               // from the call until its owner has it
	PhaseArgs                 // waits for the tasks that make its arguments
	PhaseTurn                 // an actor's call: waits for its turn
	PhaseQueue                // waits for a slot
	PhaseFetch                // its stored arguments are pinned
	PhaseRestore              // the store makes room for them, or reads them back from spill storage
	PhasePush                 // on its way to the worker, and behind others there
	PhaseRun                  // the function, with the encoding and sealing of its results
	PhaseBlocked              // waits in a get
	PhaseSeal                 // its results are accepted and known to those who wait
	PhaseBackoff              // waits before it runs again
	numPhases
)

var phaseNames = [numPhases]string{
	"task", "submit", "wait for arguments", "wait for turn", "queue", "fetch arguments", "restore arguments",
	"push", "run", "blocked in get", "seal", "backoff",
}

// String is the name of the phase's spans.
func (p Phase) String() string {
	if p < numPhases {
		return phaseNames[p]
	}
	return "unknown"
}

// SpanOf is the id of a span of a task. It follows from the task's id, so that every process
// knows it without being told. n is the number of the attempt, or the index among spans of the kind.
func SpanOf(task ids.TaskID, n uint32, p Phase) [8]byte {
	x := binary.LittleEndian.Uint64(task[12:])
	if n != 0 || p != PhaseTask {
		x ^= binary.LittleEndian.Uint64(task[4:])
		x += (uint64(n)<<8 | uint64(p)) * 0x9e3779b97f4a7c15
		x = (x ^ x>>30) * 0xbf58476d1ce4e5b9 // SplitMix64's finaliser
		x = (x ^ x>>27) * 0x94d049bb133111eb
		x ^= x >> 31
	}
	var id [8]byte
	binary.LittleEndian.PutUint64(id[:], x|1) // never zero, which means none
	return id
}
