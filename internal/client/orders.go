package client

import (
	"maps"
	"math"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/fxamacker/cbor/v2"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/internal/state"
)

// fewOrders is how many counters a task has before it asks which of them its owner needs no more.
const fewOrders = 4096

// callOrders are the counters of one caller's calls, one an actor. A counter cannot go with the last handle: an actor that is found again by
// its name is called on from the number where it was. It goes when the owner has no number of this caller to go on from, since it does not know
// the actor, or the actor has ended. The owner is asked when there are fewOrders, and then twice what was left.
type callOrders struct {
	mu    sync.Mutex
	many  *counters     // nil: there is the last one alone; guarded by mu
	order *callOrder    // of last; guarded by mu
	last  ids.ActorID   // guarded by mu
	puts  atomic.Uint32 // number of the task's puts; here it fits in the padding
}

type counters struct {
	of  map[ids.ActorID]*callOrder
	few int // so many need no look
}

// callOrder numbers the calls of one caller to one actor. Its lock is held while a
// call is sent, so that the order of the numbers is the order on the wire.
type callOrder struct {
	mu  sync.Mutex
	seq uint64 // of the last call; guarded by mu
}

// orderOf is the counter of the task's calls to an actor.
func (tc *TaskContext) orderOf(actor ids.ActorID) *callOrder {
	a := &tc.orders
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.order != nil && a.last == actor {
		return a.order
	}
	if a.order == nil && a.many == nil { // most tasks call one actor
		a.last, a.order = actor, new(callOrder)
		return a.order
	}
	if a.many == nil {
		a.many = &counters{of: map[ids.ActorID]*callOrder{a.last: a.order}, few: fewOrders}
	}
	o := a.many.of[actor]
	if o == nil {
		o = new(callOrder)
		a.many.of[actor] = o
		if len(a.many.of) > a.many.few && tc.Client.start(tc.dropOrders) {
			a.many.few = math.MaxInt // until it is done
		}
	}
	a.last, a.order = actor, o
	return o
}

// dropOrders drops the counters that the owner needs no more.
func (tc *TaskContext) dropOrders() {
	a := &tc.orders
	a.mu.Lock()
	all := slices.Collect(maps.Keys(a.many.of))
	a.mu.Unlock()
	for batch := range slices.Chunk(all, fewOrders) {
		if err := tc.dropOrdersOf(batch); tc.Client.Err() != nil {
			return
		} else if err != nil {
			tc.Client.log.Warn("the node does not say which actors have ended: the counters of calls to them stay for now", "error", err)
			break
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.many.of) < len(all)/2 {
		a.many.of = maps.Clone(a.many.of) // a map does not shrink
	}
	a.many.few = max(fewOrders, 2*len(a.many.of))
}

// dropOrdersOf asks about some of the actors. One that was called since is left for the next time: the answer may be older than the call.
func (tc *TaskContext) dropOrdersOf(actors []ids.ActorID) error {
	a, r := &tc.orders, state.UncountedRequest{Job: uint64(tc.Base().Job()), Actors: make([][]byte, len(actors))}
	asked := make([]uint64, len(actors))
	for i, id := range actors {
		r.Actors[i] = ids.TaskID(id).Bytes()
		a.mu.Lock()
		o := a.many.of[id]
		a.mu.Unlock()
		asked[i] = o.number()
	}
	body, err := cbor.Marshal(r)
	if err != nil {
		return err
	}
	answer, err := tc.Client.Request(tc.Client.life, state.MethodUncounted, body)
	if err != nil {
		return err
	}
	var un state.Uncounted
	if err := cbor.Unmarshal(answer, &un); err != nil {
		return errs.New(errs.CodeProtocol, "request %s: the node's answer: %v", state.MethodUncounted, err)
	}
	for _, i := range un.Actors {
		if i >= 0 && i < len(actors) {
			a.drop(actors[i], asked[i])
		}
	}
	return nil
}

func (o *callOrder) number() uint64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.seq
}

// drop drops a counter that is still at a number. Who has got it already, and calls after this, begins at 1 like whoever gets the next one.
func (a *callOrders) drop(actor ids.ActorID, at uint64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	o := a.many.of[actor]
	if o == nil || !o.mu.TryLock() {
		return // it is called now
	}
	defer o.mu.Unlock()
	if o.seq != at {
		return
	}
	o.seq = 0
	delete(a.many.of, actor)
	if a.last == actor {
		a.last, a.order = ids.ActorID{}, nil
	}
}
