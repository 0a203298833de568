package owner

import (
	"maps"
	"slices"
	"time"

	"mobula/internal/ids"
)

// The bytes of another job's object are its own owner's business, who knows where they are, and frees them everywhere. So before a store is asked for one for a
// client or a task here, that owner is asked to have the store know where the object is (Bring, bring.go), and says when it does. The store of a node is asked
// for no more than once: if it has lost the object since, it says so.

// borrowed is what the owner of another job's object has done for this one.
type borrowed struct {
	on    []ids.Home // whose stores know where the object is
	waits []borrowWait
}

// borrowWait is a client that waits until the store of its node knows of an object, or a task whose arguments are to be pinned there.
type borrowWait struct {
	node ids.Home
	cl   *clientRec
	t    *taskRec
	gen  uint32 // the task's: with another one it waits no more
}

// isOn tells whether the store of a node knows where another job's object is.
func (br *borrows) isOn(id ids.ObjectID, node ids.Home) bool {
	b := br.byID[id]
	return b != nil && slices.Contains(b.on, node)
}

// forGet has a client wait until the store of its node knows of an object.
func (br *borrows) forGet(id ids.ObjectID, node ids.Home, cl *clientRec) {
	br.wait(id, borrowWait{node: node, cl: cl})
}

// forArgs has a task wait until the store of a node knows of an argument.
func (br *borrows) forArgs(id ids.ObjectID, node ids.Home, t *taskRec) {
	br.wait(id, borrowWait{node: node, t: t, gen: t.gen})
}

// wait asks an object's owner to have the store of a node know of it, unless it was asked.
func (br *borrows) wait(id ids.ObjectID, w borrowWait) {
	b := br.byID[id]
	if b == nil {
		b = &borrowed{}
		br.byID[id] = b
	}
	if !slices.Contains(b.nodes(), w.node) {
		br.askToBring(Bring{ID: id, Node: w.node})
	}
	if !slices.Contains(b.waits, w) {
		b.waits = append(b.waits, w)
	}
}

// bringPatience is how long an owner of another home may not answer a Bring before it is asked again: it may have heard of the end of the node's last life, and given
// up what was asked of it, when this one had heard of the next life already.
const bringPatience = time.Second

// askToBring asks an object's owner to have the store of a node know of it.
func (br *borrows) askToBring(m Bring) {
	br.toOwner(m.ID.Job(), m)
	if br.far(m.ID.Job()) {
		br.timers.add(br.now+int64(bringPatience), timer{kind: timerBringAgain, bring: &bringing{Bring: m}})
	}
}

// bringAgain asks again where somebody waits still.
func (br *borrows) bringAgain(m bringing) {
	if b := br.byID[m.ID]; b != nil && slices.Contains(b.nodes(), m.Node) {
		br.askToBring(m.Bring)
	}
}

// nodes gives those that an object is waited for on, in order.
func (b *borrowed) nodes() []ids.Home {
	var out []ids.Home
	for _, w := range b.waits {
		out = append(out, w.node)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// awaits tells whether somebody waits for an object.
func (br *borrows) awaits(id ids.ObjectID) bool {
	b := br.byID[id]
	return b != nil && len(b.waits) > 0
}

// brought is the owner's word that the store of a node knows of an object, or that none does: who waits for that goes on.
func (br *borrows) brought(m Brought) {
	b := br.byID[m.ID]
	if b == nil {
		return
	}
	if !m.Gone && !slices.Contains(b.on, m.Node) {
		b.on = append(b.on, m.Node)
	}
	br.goOn(m.ID, b.takeAt(m.Node))
}

// goOnAll has all go on that wait for an object.
func (br *borrows) goOnAll(id ids.ObjectID) {
	if b := br.byID[id]; b != nil {
		all := b.waits
		b.waits = nil
		br.goOn(id, all)
	}
}

// goOn has those look at an object again who have waited for it: first the clients.
func (br *borrows) goOn(id ids.ObjectID, waits []borrowWait) {
	for _, w := range waits {
		if w.cl != nil && !w.cl.gone {
			br.up.get(w.cl, id, true)
		}
	}
	for _, w := range waits {
		if w.t != nil {
			br.up.pinBrought(w.t, w.gen)
		}
	}
	br.up.recountBorrowed(id)
}

// takeAt gives those that wait for an object on a node, who do so no more.
func (b *borrowed) takeAt(node ids.Home) (out []borrowWait) {
	out, b.waits = split(b.waits, func(w borrowWait) bool { return w.node == node })
	return out
}

// split cuts a list in two: what is of a kind, and the rest, each in order. It reuses the list for the rest.
func split[T any](list []T, is func(T) bool) (of, rest []T) {
	rest = slices.DeleteFunc(list, func(x T) bool {
		if is(x) {
			of = append(of, x)
			return true
		}
		return false
	})
	return of, rest
}

// lost forgets which stores know of an object: one of them does not have it any more.
func (br *borrows) lost(id ids.ObjectID) {
	if b := br.byID[id]; b != nil {
		b.on = nil
	}
}

// dropGet withdraws what a client waits for.
func (br *borrows) dropGet(id ids.ObjectID, cl *clientRec) {
	if b := br.byID[id]; b != nil {
		b.waits = slices.DeleteFunc(b.waits, func(w borrowWait) bool { return w.cl == cl })
	}
}

// nodeGone forgets a node, with who was there.
func (br *borrows) nodeGone(node ids.Home) {
	for _, id := range br.sorted() {
		b := br.byID[id]
		b.on = without(b.on, node)
		b.takeAt(node)
		br.up.recountBorrowed(id)
	}
}

// repeatAsks asks an owner anew that was restarted.
func (br *borrows) repeatAsks(job ids.JobID) {
	for _, id := range br.sorted() {
		if id.Job() != job {
			continue
		}
		for _, node := range br.byID[id].nodes() {
			br.askToBring(Bring{ID: id, Node: node})
		}
	}
}

func (br *borrows) sorted() []ids.ObjectID {
	return slices.SortedFunc(maps.Keys(br.byID), ids.ObjectID.Compare)
}
