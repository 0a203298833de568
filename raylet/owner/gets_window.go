package owner

import (
	"mobula/internal/ids"
	"mobula/internal/queue"
)

// A client that does not read, for it was stopped or its program is busy, may have asked for any number of values. What was sent and is
// not known to be on its way counts in the budget of inline values, and is bounded: above Config.SendWindow an answer with a value is put
// off, and costs its object's name. The value stays its object's, which the store may take as any other's; whichever has it then answers when the
// client reads again.

// messageCost is what a message costs beside its value.
const messageCost = 128

// takeWindow counts a value that is sent to a client, and is false if it has to wait.
func (gs *gets) takeWindow(cl *clientRec, o *objRec, fetch bool) bool {
	u := &cl.window
	if u.bytes >= gs.cfg.SendWindow {
		gs.deferAnswer(cl, o.id, fetch)
		return false
	}
	n := sizeOf(o.res) + messageCost
	u.bytes += n
	u.fresh += n
	gs.objects.budget.unread += n
	if u.fresh >= gs.cfg.SendWindow/4 {
		gs.requestReceipt(cl)
	}
	return true
}

func (gs *gets) deferAnswer(cl *clientRec, id ids.ObjectID, fetch bool) {
	u := &cl.window
	if u.later == nil {
		u.later = make(map[ids.ObjectID]deferredAnswer)
	}
	a, known := u.later[id]
	if fetch {
		a.fetch++
	} else {
		a.plain++
	}
	if !known {
		if u.queue.Len() > 2*len(u.later)+64 {
			u.queue.DeleteFunc(func(id ids.ObjectID) bool { _, ok := u.later[id]; return !ok })
		}
		u.queue.Push(id)
	}
	u.later[id] = a
	gs.stats.PutOff++
	gs.requestReceipt(cl)
}

// requestReceipt asks to hear when all that was sent so far is on its way.
func (gs *gets) requestReceipt(cl *clientRec) {
	if n := cl.window.fresh; n > 0 {
		cl.window.fresh = 0
		gs.effects = append(gs.effects, Effect{Kind: Receipt, Client: cl.id, N: n})
	}
}

// clientRead answers what was put off, as far as there is room.
func (gs *gets) clientRead(ev ClientRead) {
	cl := gs.clients.client(ev.Client)
	if cl == nil || cl.gone {
		return
	}
	u := &cl.window
	n := min(ev.Bytes, u.bytes-u.fresh) // a core before this one may have asked
	u.bytes -= n
	gs.objects.budget.unread -= n
	for u.queue.Len() > 0 && u.bytes < gs.cfg.SendWindow {
		id := u.queue.Pop()
		a, ok := u.later[id]
		if !ok {
			continue
		}
		delete(u.later, id)
		for range a.plain {
			gs.get(cl, id, false)
		}
		for range a.fetch {
			gs.get(cl, id, true)
		}
	}
	if len(u.later) == 0 {
		u.later, u.queue = nil, queue.Queue[ids.ObjectID]{}
		return
	}
	gs.requestReceipt(cl)
}

// withdraw takes back what was put off.
func (u *sendWindow) withdraw(id ids.ObjectID) { delete(u.later, id) }

// dropWindow forgets a client's answers.
func (gs *gets) dropWindow(cl *clientRec) {
	gs.objects.budget.unread -= cl.window.bytes
	cl.window = sendWindow{}
}
