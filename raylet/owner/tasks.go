package owner

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"time"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/raylet/owner/task"
	"mobula/wire"
)

// move takes a task along its table. A move that the table does not have is a fault of the
// core: whoever calls has looked at the state.
func (ts *tasks) move(t *taskRec, ev task.Event) {
	to, ok := task.Next(t.state, ev)
	if !ok {
		panic(fmt.Sprintf("owner: task %v (%s) is %v and cannot %v", t.id(), t.name(), t.state, ev))
	}
	ts.byState[t.state]--
	ts.byState[to]++
	t.state = to
	t.since = ts.now
	if ts.cfg.Transitions {
		ts.changed(t, ts.now)
	}
}

func (ts *tasks) changed(t *taskRec, at int64) {
	if t.isCounted() {
		return
	}
	ch := Transition{Spec: t.spec, State: t.state, Attempt: t.start, At: at, Restart: t == ts.restarting}
	if ch.Restart {
		ts.restarting = nil
	}
	if t.state.Terminal() {
		ch.Took = time.Duration(ticks(ts.now)-t.begun) * tick
	}
	if l := t.lease; l != nil {
		ch.Lease, ch.Worker = l.id, l.worker.id
	}
	if t.isElsewhere() {
		ch.elsewhere(t)
	}
	if t.x != nil && (t.state.Terminal() || t.state == task.PendingArgs || t.state == task.Backoff) {
		ch.Reason = t.x.err
	}
	if ch.Spec == nil { // it was paged out, and ended
		ch.Spec = &wire.TaskSpec{ID: t.id(), Opts: t.options()}
	}
	ts.changes = append(ts.changes, ch)
}

// setState puts a record into a state that the log or a worker says it has.
func (ts *tasks) setState(t *taskRec, st task.State) {
	ts.byState[t.state]--
	ts.byState[st]++
	t.state, t.since = st, ts.now
}

const manyChildren = 1024

// addChild notes who submitted a task, for recursive cancels. A long list is cleared of the
// tasks that have ended before it grows.
func (ts *tasks) addChild(parent, child ids.TaskID) {
	ks := ts.children[parent]
	if len(ks) >= manyChildren && len(ks) == cap(ks) {
		live := ks[:0]
		for _, id := range ks {
			if t := ts.task(id); t != nil && !t.state.Terminal() {
				live = append(live, id)
			}
		}
		ks = live
	}
	ts.children[parent] = append(ks, child)
}

// setTimer gives a task its one timer; an earlier one is replaced.
func (ts *tasks) setTimer(t *taskRec, at int64, kind timerKind) {
	ts.stopTimer(t)
	t.ext().timer = ts.timers.add(at, timer{kind: kind, task: t})
}

func (ts *tasks) stopTimer(t *taskRec) {
	if t.x != nil && t.x.timer != nil {
		ts.timers.remove(t.x.timer)
		t.x.timer = nil
	}
}

// runAfter lets a task run again after a wait; at its deadline it is looked at in any case.
func (ts *tasks) runAfter(t *taskRec, wait time.Duration) {
	ts.move(t, task.Delay)
	at := ts.now + int64(wait)
	if d := t.deadlineAt(); d != 0 {
		at = min(at, max(d, ts.now))
	}
	ts.setTimer(t, at, timerBackoff)
}

// backoff gives the wait before the n-th time in a row, the first being 1. What ends its process again and again waits before it runs again: not
// the first time, then twice as long each time. How much longer or shorter than that is drawn from its id and the number of the time, so that
// many that ended together do not come back together, and a core that steps the same events waits the same.
func (ts *tasks) backoff(id ids.TaskID, n int) time.Duration {
	if n <= 1 {
		return 0
	}
	d := min(ts.cfg.RestartBackoff<<min(n-2, 20), ts.cfg.MaxRestartBackoff)
	h := fnv.New32a()
	_, _ = h.Write(binary.BigEndian.AppendUint32(id[:len(id):len(id)], uint32(n)))
	return d*3/4 + d/2*time.Duration(h.Sum32()%1024)/1024
}

// cancelledError is what a task ends with that was cancelled.
func (t *taskRec) cancelledError() *errs.Error {
	e := &errs.Error{Code: errs.CodeCancelled, Name: t.name(), Task: t.id().String(), Msg: t.name() + " was cancelled"}
	if t.x != nil && t.x.err != nil && t.x.err.Code != errs.CodeCancelled {
		e.Cause = []*errs.Error{t.x.err}
	}
	return e
}

// retryAt is when a task that waits runs again, Unix ns; 0: it does not wait.
func (t *taskRec) retryAt() int64 {
	if t.state != task.Backoff || t.x == nil || t.x.timer == nil {
		return 0
	}
	return t.x.timer.at
}
