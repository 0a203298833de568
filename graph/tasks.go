package graph

import "fmt"

// Flags of a task.
const (
	isWanted   uint8 = 1 << iota
	isReady          // in placement.fresh
	isLong           // seceded
	isRecalled       // recalled from its worker
	isEarly          // counted by the heuristic for roots when it was placed
)

const none = int32(-1)

// task is a task's state. It has no pointer, so the garbage collector does not scan a graph of millions.
type task struct {
	state   State
	flags   uint8
	deaths  uint8
	tries   uint8
	attempt int32
	waits   int32 // inputs that are not in memory
	users   int32 // active dependents
	alive   int32 // dependents that are not forgotten
	worker  int32 // index of the worker that processes it
	at      int32 // its index in worker.procs, or in placement.stranded
	copies  int32 // first of its copies
	blame   int32 // the dependency through which it failed; itself if it was its own error
	bytes   int64
	est     int64 // its part of its worker's occupancy
}

// tasks is the table of the tasks' states.
type tasks struct {
	*step
	list  []task
	count [numStates]int
}

func newTasks(s *step) *tasks {
	ts := &tasks{step: s, list: make([]task, s.g.Len())}
	for i := range ts.list {
		ts.list[i] = task{worker: none, copies: none, blame: none, alive: int32(len(s.g.up.of(int32(i))))}
	}
	ts.count[Released] = s.g.Len()
	return ts
}

// to changes a task's state by the table.
func (ts *tasks) to(t int32, m move) {
	x := &ts.list[t]
	s := table[x.state][m]
	if s == illegal {
		panic(fmt.Sprintf("graph: %s: no %v from %v", ts.g.Key(t), m, x.state))
	}
	ts.count[x.state]--
	ts.count[s]++
	x.state = s
}

// attempt gives the task if that attempt of it is being processed, else nil.
func (ts *tasks) attempt(t, n int32) *task {
	if x := &ts.list[t]; x.state == Processing && x.attempt == n {
		return x
	}
	return nil
}
