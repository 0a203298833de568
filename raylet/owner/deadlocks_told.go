package owner

import (
	"fmt"
	"slices"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/wire"
)

// Waits of calls that went straight, and for such calls, are told by the process that they are in. What was told may be over when it is looked at: what was waited
// for ends without the owner, and its place is given to another before the owner hears of it. So a circle in which such waits are is believed only when each was said to
// go on after it was found: then all went on when it was.

// toldWait is a wait that its process has told of.
type toldWait struct {
	m         *wire.Waits
	by        ids.ClientID
	confirmed uint64 // in the answer to the questions of this round
}

// waits takes note of a wait, or that it goes on.
func (d *deadlocks) waits(cl *clientRec, m *wire.Waits) {
	if tw := d.told[m.Task]; tw != nil {
		d.forgetWait(tw)
	}
	tw := &toldWait{m: m, by: cl.id, confirmed: m.Round}
	d.told[m.Task] = tw
	d.toldOf[m.Actor] = append(d.toldOf[m.Actor], tw)
	for i := range m.Needs {
		if v, ok := d.needed(tw, &m.Needs[i]); ok && d.suspect(m.Name, v, m.Round) {
			return
		}
	}
}

func (d *deadlocks) waitOver(cl *clientRec, m *wire.WaitOver) {
	if tw := d.told[m.Task]; tw != nil && tw.by == cl.id && tw.m.No == m.No {
		d.forgetWait(tw)
	}
}

func (d *deadlocks) forgetWait(tw *toldWait) {
	delete(d.told, tw.m.Task)
	of := slices.DeleteFunc(d.toldOf[tw.m.Actor], func(x *toldWait) bool { return x == tw })
	if len(of) == 0 {
		delete(d.toldOf, tw.m.Actor)
	} else {
		d.toldOf[tw.m.Actor] = of
	}
}

// forgetWaits forgets what a process has told that has ended.
func (d *deadlocks) forgetWaits(cl *clientRec) {
	for _, tw := range d.told {
		if tw.by == cl.id {
			d.forgetWait(tw)
		}
	}
}

// confirm asks whether waits go on. The last answer finds the circle again, if they do.
func (d *deadlocks) confirm(waits []*toldWait) {
	d.round++
	for i, tw := range waits {
		if cl := d.clients.client(tw.by); cl != nil && !cl.gone && !slices.Contains(waits[:i], tw) {
			d.toClient(cl, &wire.StillWaits{No: tw.m.No, Round: d.round})
		}
	}
}

// holdsPlace tells whether who waits is a call of the instance that there is.
func (d *deadlocks) holdsPlace(tw *toldWait) bool {
	a := d.actors.byID[tw.m.Actor]
	return a != nil && a.lease != nil && a.lease.id == tw.m.Instance && a.lease.worker.id == tw.by && !a.lease.worker.gone
}

// waiter is who waits.
func (d *deadlocks) waiter(tw *toldWait) vertex {
	if t := d.tasks.task(tw.m.Task); t != nil {
		return vertexOf(t)
	}
	return vertex{id: tw.m.Task, need: &wire.Need{Name: tw.m.Name, Actor: tw.m.Actor, Group: tw.m.Group}}
}

// needed is what makes an object that a wait is for.
func (d *deadlocks) needed(tw *toldWait, n *wire.Need) (vertex, bool) {
	if o := d.objects.object(n.Object); o != nil && o.rec != nil || !n.Call {
		return d.makerOf(n.Object)
	}
	return vertex{id: n.Object.Task, need: n, by: tw.by}, true
}

// tellCannotBegin has the process that has made a call end it. If that has ended too, nobody can say whether it has begun.
func (d *deadlocks) tellCannotBegin(v vertex, err *errs.Error) {
	if cl := d.clients.client(v.by); cl != nil && !cl.gone {
		d.toClient(cl, &wire.CannotBegin{Task: v.id, Err: err})
	} else if v.rec != nil {
		d.life.fail(v.rec, err)
	}
}

// validate checks that a wait is found by its call and by its actor.
func (d *deadlocks) validate(*recount) error {
	n := 0
	for id, of := range d.toldOf {
		n += len(of)
		for _, tw := range of {
			if d.told[tw.m.Task] != tw || tw.m.Actor != id {
				return fmt.Errorf("a wait of call %v of actor %v is kept with actor %v, and is known: %v", tw.m.Task, tw.m.Actor, id, d.told[tw.m.Task] == tw)
			}
		}
	}
	if n != len(d.told) {
		return fmt.Errorf("%d waits are told, of actors %d", len(d.told), n)
	}
	return nil
}
