package client

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"mobula/wire"
)

// toldWaits tells the owner of waits of actors' calls that it does not see, so that it finds those that wait in a circle: what waits, or what is waited for, went straight.
// Only those are told that take long, and that nothing but a result or a cancel ends.
type toldWaits struct {
	*base
	outbox *outbox

	mu   sync.Mutex
	last uint64               // guarded by mu: the number of a wait
	told map[uint64]*toldWait // guarded by mu, under which what is said of them is sent: so it is in order
}

type toldWait struct {
	ctx   context.Context
	tc    *TaskContext
	needs []*Handle
}

// tellWaitAfter is how long a wait takes before the owner hears of it.
const tellWaitAfter = 20 * time.Millisecond

// sees tells whether a wait is one that the owner is to be told of, if it takes long.
func (tw *toldWaits) sees(ctx context.Context, nodes []waitNode) bool {
	if tw.cfg.Mailboxes == nil || len(nodes) > tellNeeds || !nodes[0].fetch {
		return false
	}
	tc := FromContext(ctx)
	return tc != nil && tc.Hosted != nil && tc.Spec.Kind == wire.TaskActorCall && (tc.Blocker == nil || slices.ContainsFunc(nodes, func(n waitNode) bool { return n.h.isStraight() })) && (ctx == tc.Own || ctx.Done() == tc.Own.Done())
}

// begin tells of a wait, and gives its number.
func (tw *toldWaits) begin(ctx context.Context, nodes []waitNode) uint64 {
	w := &toldWait{ctx: ctx, tc: FromContext(ctx)}
	for i := range nodes {
		w.needs = append(w.needs, nodes[i].h)
	}
	tw.mu.Lock()
	defer tw.mu.Unlock()
	tw.last++
	if tw.told == nil {
		tw.told = make(map[uint64]*toldWait)
	}
	tw.told[tw.last] = w
	tw.say(tw.last, w, 0)
	return tw.last
}

// over tells that a wait is over.
func (tw *toldWaits) over(no uint64) {
	tw.mu.Lock()
	defer tw.mu.Unlock()
	w := tw.told[no]
	delete(tw.told, no)
	_ = tw.outbox.send(&wire.WaitOver{No: no, Task: w.tc.Task})
}

// still answers whether a wait goes on.
func (tw *toldWaits) still(m *wire.StillWaits) {
	tw.mu.Lock()
	defer tw.mu.Unlock()
	if w := tw.told[m.No]; w != nil && w.ctx.Err() == nil {
		tw.say(m.No, w, m.Round)
	}
}

// ownerLost tells an owner that was made anew.
func (tw *toldWaits) ownerLost() {
	tw.mu.Lock()
	defer tw.mu.Unlock()
	for no, w := range tw.told {
		tw.say(no, w, 0)
	}
}

// say tells what a wait is still for. The lock is held.
func (tw *toldWaits) say(no uint64, w *toldWait, round uint64) {
	spec := w.tc.Spec
	m := &wire.Waits{No: no, Task: w.tc.Task, Name: nameOf(spec), Actor: w.tc.Hosted.Actor, Instance: w.tc.Hosted.Instance, Group: spec.Opts.Group, Round: round}
	for _, h := range w.needs {
		m.Needs = addNeed(m.Needs, h, 0)
	}
	_ = tw.outbox.send(m)
}

// addNeed adds what an object needs: who waits for a call that waits for an argument, waits for that.
func addNeed(list []wire.Need, h *Handle, depth int) []wire.Need {
	if h.Ready() {
		return list
	}
	need := wire.Need{Object: h.id}
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
func (s *straight) cannotBegin(c *wire.CannotBegin) {
	if m := s.callOf(c.Task); m != nil {
		m.EndUnbegun(c.Err)
	}
}
