package node

import (
	"context"
	"time"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/internal/inbox"
	"mobula/internal/node/gather"
	"mobula/raylet/internode"
	"mobula/wire"
)

const (
	answerWithin = 5 * time.Second // how long a node that was asked may say nothing, unless its answer adds little
	mostAnswer   = wire.MaxFrame / 2
)

// asking is one question to other nodes, until it is answered.
type asking struct {
	q      *questions
	id     uint64
	method string
	bodies map[ids.Home][]byte
	core   *gather.Core
	in     *inbox.Inbox[gather.Event]
	timer  *time.Timer
	done   *gather.Done // nil: it is not answered
}

// put asks nodes, each with a body of its own, which may say nothing for that long. Who puts a question must end it.
func (q *questions) put(method string, within time.Duration, bodies map[ids.Home][]byte) *asking {
	a := &asking{q: q, method: method, bodies: bodies, core: gather.New(), in: inbox.New[gather.Event](), timer: time.NewTimer(within)}
	q.mu.Lock()
	q.last++
	a.id = q.last
	q.open[a.id] = a.in
	q.mu.Unlock()
	begin := gather.Begin{Within: within, Most: mostAnswer}
	for node := range bodies {
		begin.Nodes = append(begin.Nodes, node)
	}
	a.step(begin)
	return a
}

func (a *asking) step(ev gather.Event) {
	for _, f := range a.core.Step(a.q.clock.Now(), ev) {
		switch f := f.(type) {
		case gather.Ask:
			a.q.links.needTime(f.Node) // there may be times in the answer
			a.q.links.say(f.Node, &internode.Ask{ID: a.id, Method: a.method, Body: a.bodies[f.Node]})
		case gather.After:
			a.timer.Reset(f.Delay)
		case gather.Done:
			a.done = &f
		}
	}
}

// await gives the end of a question, or the cause of ctx.
func (a *asking) await(ctx context.Context) (gather.Done, error) {
	for a.done == nil {
		late := false
		select {
		case <-a.in.Ready():
		case <-a.timer.C:
			late = true
		case <-ctx.Done():
			return gather.Done{}, context.Cause(ctx)
		}
		for _, ev := range a.in.Take() { // what has come by now counts
			a.step(ev)
		}
		if late {
			a.step(gather.Timer{})
		}
	}
	return *a.done, nil
}

// end forgets a question: answers that come later are dropped.
func (a *asking) end() {
	a.timer.Stop()
	a.q.mu.Lock()
	defer a.q.mu.Unlock()
	delete(a.q.open, a.id)
}

// answered takes a part of an answer.
func (q *questions) answered(node ids.Home, m *internode.Answer) {
	q.mu.Lock()
	in := q.open[m.ID]
	q.mu.Unlock()
	if in != nil {
		in.Add(gather.Part{Node: node, Number: m.Part, Last: m.Last, Body: m.Body, Err: m.Err})
	}
}

// gone says that a node's life is over: it answers nothing any more, and waits for no answer.
func (q *questions) gone(node ids.Home, err *errs.Error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, in := range q.open {
		in.Add(gather.Gone{Node: node, Err: err})
	}
}
