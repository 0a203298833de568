package client

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"mobula/internal/direct/talk"
	"mobula/wire"
)

// longWaits tells the owner of waits of actors' calls that it does not see, so that it finds those that wait in a circle: what waits, or what is waited for, went straight.
// Only those are told that take long, and that nothing but a result or a cancel ends.
type longWaits struct {
	*base
	outbox *outbox

	mu   sync.Mutex
	last uint64               // guarded by mu: the number of a wait
	told map[uint64]*longWait // guarded by mu, under which what is said of them is sent: so it is in order
}

type longWait struct {
	ctx   context.Context
	tc    *TaskContext
	needs []*Handle
}

// tellWaitAfter is how long a wait takes before the owner hears of it.
const tellWaitAfter = 20 * time.Millisecond

// sees tells whether a wait is one that the owner is to be told of, if it takes long.
func (lw *longWaits) sees(ctx context.Context, nodes []waitNode) bool {
	if lw.cfg.Mailboxes == nil || len(nodes) > tellNeeds || !nodes[0].fetch {
		return false
	}
	tc := FromContext(ctx)
	return tc != nil && tc.Hosted != nil && tc.Spec.Kind == wire.TaskActorCall && (tc.Blocker == nil || slices.ContainsFunc(nodes, func(n waitNode) bool { return n.h.isStraight() })) && ctx.Done() == tc.Own.Done()
}

// begin tells of a wait, and gives its number.
func (lw *longWaits) begin(ctx context.Context, nodes []waitNode) uint64 {
	w := &longWait{ctx: ctx, tc: FromContext(ctx)}
	for i := range nodes {
		w.needs = append(w.needs, nodes[i].h)
	}
	lw.mu.Lock()
	defer lw.mu.Unlock()
	lw.last++
	if lw.told == nil {
		lw.told = make(map[uint64]*longWait)
	}
	lw.told[lw.last] = w
	lw.say(lw.last, w, 0)
	return lw.last
}

// over tells that a wait is over.
func (lw *longWaits) over(no uint64) {
	lw.mu.Lock()
	defer lw.mu.Unlock()
	w := lw.told[no]
	delete(lw.told, no)
	_ = lw.outbox.send(&talk.WaitOver{No: no, Task: w.tc.Task})
}

// still answers whether a wait goes on.
func (lw *longWaits) still(m *talk.StillWaits) {
	lw.mu.Lock()
	defer lw.mu.Unlock()
	if w := lw.told[m.No]; w != nil && w.ctx.Err() == nil {
		lw.say(m.No, w, m.Round)
	}
}

// ownerLost tells an owner that was made anew.
func (lw *longWaits) ownerLost() {
	lw.mu.Lock()
	defer lw.mu.Unlock()
	for no, w := range lw.told {
		lw.say(no, w, 0)
	}
}

// say tells what a wait is still for. The lock is held.
func (lw *longWaits) say(no uint64, w *longWait, round uint64) {
	spec := w.tc.Spec
	m := &talk.Waits{No: no, Task: w.tc.Task, Name: nameOf(spec), Actor: w.tc.Hosted.Actor, Instance: w.tc.Hosted.Instance, Group: spec.Opts.Group, Round: round}
	for _, h := range w.needs {
		m.For = addNeed(m.For, h, 0)
	}
	_ = lw.outbox.send(m)
}

// addNeed adds what an object needs: who waits for a call that waits for an argument, waits for that.
func addNeed(list []talk.Need, h *Handle, depth int) []talk.Need {
	if h.Ready() {
		return list
	}
	need := talk.Need{Object: h.id}
	if k := h.call.Load(); k != nil && !k.task.Load() {
		if depth < maxNeedsDepth && k.argumentsLeft() > 0 {
			for i := range k.inputs.nodes {
				list = addNeed(list, k.inputs.nodes[i].h, depth+1)
			}
			return list
		}
		need.Call, need.Name, need.Actor, need.Group = true, nameOf(k.spec), k.spec.Actor, k.spec.Opts.Group
	}
	return append(list, need)
}

const maxNeedsDepth = 100 // of arguments of arguments

// isStraight tells whether an object is the result of a call that went straight.
func (h *Handle) isStraight() bool {
	m := h.call.Load()
	return m != nil && !m.task.Load()
}

// nameOf is what a task is called.
func nameOf(spec *wire.TaskSpec) string { return cmp.Or(spec.Opts.Label, spec.Opts.Func) }

// cannotBegin ends a call that the owner has found to wait for itself, unless it has begun.
func (s *straight) cannotBegin(c *talk.CannotBegin) {
	if m := s.callOf(c.Task); m != nil {
		m.EndUnbegun(c.Err)
	}
}
