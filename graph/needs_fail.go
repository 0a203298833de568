package graph

import (
	"errors"
	"fmt"
)

// ErrCancelled is the cause of tasks that Cancel failed.
var ErrCancelled = errors.New("graph: cancelled")

// ErrForgotten is the cause if a result is wanted whose task was forgotten before.
var ErrForgotten = errors.New("graph: the task is forgotten")

// KilledError says that a task fails because workers died while they ran it.
type KilledError struct {
	Key    string
	Deaths int
}

func (e *KilledError) Error() string {
	return fmt.Sprintf("graph: %q: %d workers died while they ran it", e.Key, e.Deaths)
}

func (ns *needs) failFor(t int32, err error) {
	ns.errs[t] = err
	ns.fail(t, t)
}

// fail ends a task and all its active dependents. via is the dependency through which it failed.
func (ns *needs) fail(t, via int32) {
	type step struct{ t, via int32 }
	todo := []step{{t, via}}
	for len(todo) > 0 {
		s := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		x := &ns.tasks.list[s.t]
		if !x.state.active() && x.state != Released {
			continue
		}
		active := x.state.active()
		if x.worker != none || x.state == NoWorker {
			ns.withdraw(s.t)
		}
		ns.tasks.to(s.t, onFail)
		x.blame = s.via
		if x.flags&isWanted != 0 {
			ns.left--
			ns.emitFailed(s.t)
		}
		for _, u := range ns.g.up.of(s.t) {
			if ns.tasks.list[u].state.active() {
				todo = append(todo, step{u, s.t})
			}
		}
		if active {
			ns.releaseInputs(s.t)
		}
	}
}

func (ns *needs) emitFailed(t int32) {
	chain := ns.chain(t)
	ns.emit(Failed{Task: t, Err: ns.errs[chain[len(chain)-1]], Chain: chain})
}

// chain leads from a failed task to the one whose own error it was.
func (ns *needs) chain(t int32) []int32 {
	out := []int32{t}
	for ns.tasks.list[t].blame != t && ns.tasks.list[t].blame != none {
		t = ns.tasks.list[t].blame
		out = append(out, t)
	}
	return out
}
