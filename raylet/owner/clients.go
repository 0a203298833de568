package owner

import (
	"slices"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/wire"
)

func (cs *clients) client(id ids.ClientID) *clientRec {
	if cl := cs.lastClient; cl != nil && cl.id == id {
		return cl
	}
	cl := cs.byID[id]
	if cl != nil {
		cs.lastClient = cl
	}
	return cl
}

func (cs *clients) addClient(id ids.ClientID, role wire.Role) *clientRec {
	cl := &clientRec{id: id, role: role}
	cs.byID[id] = cl
	cs.lastClient = nil
	return cl
}

func (t *taskRec) eachReturn(f func(*objRec)) {
	if t.nret == wire.Streaming {
		t.x.stream.eachItem(f)
		return
	}
	for i := range uint32(max(t.nret, 0)) {
		f(t.ret(i))
	}
}

// maybeForget removes a client that is gone, or of which only a lease was known, and that has no lease to settle.
func (cs *clients) maybeForget(cl *clientRec) {
	if (cl.gone || !cl.joined) && len(cl.leases) == 0 && cl.handles == 0 {
		if cl.settle != nil {
			cs.timers.remove(cl.settle)
			cl.settle = nil
		}
		if cs.byID[cl.id] == cl {
			delete(cs.byID, cl.id)
		}
		if cs.lastClient == cl {
			cs.lastClient = nil
		}
	}
}

// spend counts what a client's messages took of its credit, to give it back.
func (cs *clients) spend(cl *clientRec, bytes int64) {
	if cl.used == 0 {
		cs.creditors = append(cs.creditors, cl)
	}
	cl.used += bytes
}

// flushCredit gives credit back, in steps of an eighth of the window.
func (cs *clients) flushCredit() {
	keep := cs.creditors[:0]
	for _, cl := range cs.creditors {
		if cl.used < cs.cfg.CreditWindow/8 && !cl.gone {
			keep = append(keep, cl)
			continue
		}
		cs.toClient(cl, &wire.Credit{Bytes: cl.used})
		cl.used = 0
	}
	clear(cs.creditors[len(keep):])
	cs.creditors = keep
}

// settleCredit tells a client that all is handled that it sent before its holdings: what of that a lost core had not given back nobody does any more. The
// window goes before, since the lost core may not have told it.
func (cs *clients) settleCredit(cl *clientRec) {
	if cs.cfg.CreditWindow <= 0 {
		return
	}
	if cl.used > 0 {
		cl.used = 0
		cs.creditors = slices.DeleteFunc(cs.creditors, func(c *clientRec) bool { return c == cl })
	}
	cs.toClient(cl, &wire.Credit{Bytes: cs.cfg.CreditWindow})
	cs.toClient(cl, &wire.Credit{})
}

// workerName is how errors call a worker.
func (cl *clientRec) workerName() string { return "worker " + cl.id.String() }

func (cl *clientRec) deathCause() *errs.Error {
	if cl.lostErr != nil {
		return cl.lostErr
	}
	return errs.New(errs.CodeWorkerCrashed, "the connection of %s ended", cl.workerName())
}
