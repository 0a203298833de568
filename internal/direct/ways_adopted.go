package direct

import (
	"maps"
	"slices"

	"mobula/internal/errs"
	"mobula/internal/ids"
)

// This file is what becomes of adopted calls.

func (w *Ways) adoption(call ids.TaskID, by ids.ClientID, actor ids.ActorID) (a *adoption, fresh bool) {
	if a = w.adopted[call]; a != nil {
		return a, false
	}
	a = &adoption{id: call, by: by, actor: actor}
	w.adopted[call] = a
	w.client(by).calls[call] = a
	return a, true
}

// of says whose call it is from now on.
func (w *Ways) of(a *adoption, by ids.ClientID) {
	if a.by != by {
		delete(w.client(a.by).calls, a.id)
		w.maybeForget(a.by)
		a.by = by
		w.client(by).calls[a.id] = a
	}
}

// goes notes where a call is; nil: nowhere.
func (w *Ways) goes(a *adoption, l *lane, no uint64) {
	w.leave(a)
	if l != nil {
		a.channel, a.instance, a.no = l.id, l.instance, no
		l.calls[a.id] = a
	}
}

// leave notes that nobody asks any more where a call is.
func (w *Ways) leave(a *adoption) {
	l := w.channels[a.channel]
	a.channel, a.said, a.outcome = 0, SaidNothing, nil
	if l != nil {
		delete(l.calls, a.id)
		w.maybeDrop(l)
	}
}

func (w *Ways) adopting(e Adopting) {
	a, _ := w.adoption(e.Call, e.Client, e.Actor)
	w.do(WaysEffect{Do: TellAdopted, Client: e.Client, Call: e.Call})
	if a.own || a.resolved { // said again, or by an attempt of its caller after the one that counts
		return
	}
	w.of(a, e.Client)
	a.order, a.retries, a.tries = e.Order, e.Retries, e.Tries
	a.strayed = e.Channel != 0 && w.channels[e.Channel] == nil
	if w.goes(a, w.channels[e.Channel], e.No); e.Outcome != nil {
		w.resolve(a, e.Outcome)
	}
}

// cancelAsked passes a cancel to the process that has the call; if that is gone, to the one where it is asked for.
func (w *Ways) cancelAsked(e CancelAsked) {
	a := w.adopted[e.Call]
	if a == nil || a.own || a.resolved {
		return
	}
	a.unwanted, a.wish = true, a.wish.and(e.Wish)
	if w.isGone(a.by) {
		w.askEnd(a)
		return
	}
	w.do(WaysEffect{Do: PassCancel, Client: a.by, Actor: a.actor, Call: a.id, Wish: e.Wish})
}

// askEnd asks the host to end a call that it was asked for, if somebody has cancelled it. One that was not sent never comes there.
func (w *Ways) askEnd(a *adoption) {
	if l := w.channels[a.channel]; a.unwanted && l != nil && a.no < unsent && !w.buried(l) {
		w.do(WaysEffect{Do: AskEnd, Host: l.host, Instance: l.instance, Channel: l.id, No: a.no, Wish: a.wish})
	}
}

// freed forgets a call.
func (w *Ways) freed(call ids.TaskID) {
	a := w.adopted[call]
	if a == nil {
		return
	}
	w.leave(a)
	delete(w.adopted, call)
	delete(w.client(a.by).calls, call)
	w.maybeForget(a.by)
}

func (w *Ways) submitted(e Submitted) {
	a, fresh := w.adoption(e.Call, e.Client, e.Actor)
	if !fresh && w.isGone(a.by) { // its caller runs again
		w.of(a, e.Client)
		if a.resolved {
			w.do(WaysEffect{Do: AnswerCaller, Client: e.Client, Call: e.Call})
			return
		}
		if a.own {
			return
		}
	}
	a.tries = e.Tries
	w.make(a)
}

// make has the owner make a call.
func (w *Ways) make(a *adoption) {
	w.leave(a)
	a.own = true
	w.do(WaysEffect{Do: MakeCall, Actor: a.actor, Call: a.id, Tries: a.tries})
}

func (w *Ways) resolve(a *adoption, o *Outcome) {
	w.leave(a)
	a.resolved = true
	w.do(WaysEffect{Do: ResolveCall, Call: a.id, Outcome: o})
}

// callerGone takes over what a process leaves behind. What it has not sent goes behind what it has.
func (w *Ways) callerGone(id ids.ClientID) {
	c := w.client(id)
	c.gone = true
	for _, p := range c.asking {
		p.asking = slices.DeleteFunc(p.asking, func(x ids.ClientID) bool { return x == id })
	}
	clear(c.asking)
	last := make(map[ids.ActorID]*lane)
	for _, ch := range slices.Sorted(maps.Keys(c.lanes)) {
		last[c.lanes[ch].actor] = c.lanes[ch]
	}
	no := uint64(unsent)
	for _, a := range inOrder(c.calls) {
		if a.own || a.resolved {
			continue
		}
		l := w.channels[a.channel]
		if a.strayed {
			w.begunOrNot(a)
			continue
		}
		if l == nil && last[a.actor] != nil {
			l, no = last[a.actor], no+1
			w.goes(a, l, no)
		}
		switch {
		case l == nil:
			w.make(a)
		case w.buried(l):
			w.unheard(a)
		default:
			w.do(WaysEffect{Do: AskWhere, Host: l.host, Instance: l.instance, Channel: l.id, No: a.no})
			w.askEnd(a)
		}
	}
	for _, ch := range slices.Sorted(maps.Keys(c.lanes)) {
		w.hungUp(ch)
	}
	w.maybeForget(id)
}

func (w *Ways) buried(l *lane) bool {
	p := w.actors[l.actor].past[l.instance]
	return p != nil && p.buried
}

// hostGone deals with the calls of which a host can say nothing any more.
func (w *Ways) hostGone(e HostGone) {
	p := w.actors[e.Actor]
	if p == nil || p.past[e.Instance] == nil || p.past[e.Instance].buried {
		return
	}
	p.past[e.Instance].buried = true
	for _, l := range p.lanesOf(e.Instance) {
		for _, a := range inOrder(l.calls) {
			if w.isGone(a.by) {
				w.unheard(a)
			}
		}
	}
}

// processGone is HostGone of each instance that has a channel: of others nothing is asked.
func (w *Ways) processGone(host ids.ClientID) {
	for _, ch := range slices.Sorted(maps.Keys(w.channels)) {
		if l := w.channels[ch]; l != nil && l.host == host {
			w.hostGone(HostGone{Actor: l.actor, Instance: l.instance})
		}
	}
}

// begunOrNot decides about a call of which nobody knows whether it has begun, nor where.
func (w *Ways) begunOrNot(a *adoption) {
	if a.retries < 0 || a.tries < a.retries {
		a.tries++
		w.make(a)
		return
	}
	w.resolve(a, &Outcome{Err: errs.New(errs.CodeActorUnavailable, "actor %v: the call may have run; who knows is gone", a.actor)})
}

// unheard decides about a call whose caller and host are gone: if it was sent, it may have begun.
func (w *Ways) unheard(a *adoption) {
	if a.no >= unsent {
		w.make(a)
	} else {
		w.afterEnd(a, true, nil)
	}
}

// afterEnd decides about a call whose instance has ended, and whose caller is gone.
func (w *Ways) afterEnd(a *adoption, begun bool, culprit *Outcome) {
	p := w.place(a.actor).past[a.instance]
	switch {
	case p.Dead:
	case !begun && p.Keeps:
		w.make(a)
		return
	case begun && (a.retries < 0 || a.tries < a.retries):
		a.tries++
		w.make(a)
		return
	}
	if culprit == nil {
		culprit = &Outcome{Err: p.Err}
	}
	w.resolve(a, culprit)
}

// at is the call that a host was asked for.
func (w *Ways) at(c Channel, no uint64) *adoption {
	if l := w.channels[c]; l != nil {
		for _, a := range l.calls {
			if a.no == no {
				return a
			}
		}
	}
	return nil
}

// told is a host's word on a call whose caller is gone.
func (w *Ways) told(e Told) {
	a := w.at(e.Channel, e.No)
	if a == nil {
		return
	}
	if e.Said == SaidNothing {
		w.resolve(a, e.Outcome)
		return
	}
	if w.place(a.actor).past[a.instance] == nil { // the end of the instance follows
		a.said, a.outcome = e.Said, e.Outcome
		return
	}
	w.afterEnd(a, e.Said != SaidWaits, e.Outcome)
}
