package client

import (
	"slices"
	"sync"

	"mobula/internal/ids"
	"mobula/wire"
)

// marks asks owners to say when they have taken what this process has said to them before.
type marks struct {
	*base
	outbox *outbox

	mu   sync.Mutex
	last uint64           // guarded by mu
	open map[uint64]*mark // guarded by mu
}

// mark is a question, to each owner of some objects. Its number is the same for all.
type mark struct {
	jobs []ids.JobID // whose owners have not answered
	then func()
}

// ask has then called when the owners of objects, or the job's own where there are none, have taken all that was said before. That is in a goroutine of the client's own, with no lock
// held; if the connection is gone it is not.
func (ms *marks) ask(of []ids.ObjectID, then func()) {
	k := &mark{then: then}
	add := func(j ids.JobID) {
		if !slices.Contains(k.jobs, j) {
			k.jobs = append(k.jobs, j)
		}
	}
	add(ms.cfg.Welcome.Job)
	for _, id := range of {
		add(id.Task.Job())
	}
	ms.mu.Lock()
	defer ms.mu.Unlock()
	ms.last++
	if ms.open == nil {
		ms.open = make(map[uint64]*mark)
	}
	ms.open[ms.last] = k
	ms.say(ms.last, k)
}

// say is called with mu held, so that what again says is not said twice.
func (ms *marks) say(no uint64, k *mark) {
	msgs := make([]wire.Msg, len(k.jobs))
	for i, j := range k.jobs {
		msgs[i] = &wire.Mark{Job: j, No: no}
	}
	_ = ms.outbox.Send(msgs...) // if the connection is gone nobody waits
}

// marked takes an answer. A second one, of an owner that was made anew, is none.
func (ms *marks) marked(m *wire.Marked) {
	ms.mu.Lock()
	defer ms.mu.Unlock()
	k := ms.open[m.No]
	if k == nil {
		return
	}
	k.jobs = slices.DeleteFunc(k.jobs, func(j ids.JobID) bool { return j == m.Job })
	if len(k.jobs) == 0 {
		delete(ms.open, m.No)
		ms.start(k.then)
	}
}

// again asks owners that were made anew.
func (ms *marks) again() {
	ms.mu.Lock()
	defer ms.mu.Unlock()
	for no, k := range ms.open {
		ms.say(no, k)
	}
}
