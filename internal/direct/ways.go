package direct

import (
	"bytes"
	"cmp"
	"maps"
	"slices"

	"mobula/internal/errs"
	"mobula/internal/ids"
)

// Ways is the core of the owner's part of calls that go straight: which process has which channel to which instance, and what becomes of the calls that it has adopted
// when their process dies. Where an instance is, whether another follows, and the calls that go by the owner are the affair of the rest of the owner.
type Ways struct {
	actors   map[ids.ActorID]*place
	channels map[Channel]*lane
	last     Channel
	adopted  map[ids.TaskID]*adoption
	clients  map[ids.ClientID]*caller
	effects  []WaysEffect
}

// caller is a process that calls.
type caller struct {
	gone   bool
	asking map[ids.ActorID]*place // for the way to them
	lanes  map[Channel]*lane
	calls  map[ids.TaskID]*adoption // that it has begun, and that the owner knows
}

// place is where an actor is.
type place struct {
	id       ids.ActorID
	instance Instance // 0: there is none now
	host     ids.ClientID
	dead     bool
	why      *errs.Error
	asking   []ids.ClientID // they wait for the next instance
	lanes    map[Channel]*lane
	past     map[Instance]*past
}

// past is an instance that has ended, as long as something of it is asked for.
type past struct {
	Ended
	buried bool // its process is gone too
}

// lane is one channel.
type lane struct {
	id       Channel
	client   ids.ClientID
	actor    ids.ActorID
	instance Instance
	host     ids.ClientID
	asked    bool // what has become of it
	hungUp   bool
	calls    map[ids.TaskID]*adoption // that are there, or asked for; those are not that have their outcome or go by the owner
}

// adoption is a call that the owner knows.
type adoption struct {
	id       ids.TaskID
	by       ids.ClientID
	order    uint64 // among the calls that this has made of the actor
	actor    ids.ActorID
	own      bool // it goes by the owner
	astray   bool // it is on a channel that an owner before this one has given
	resolved bool
	channel  Channel // where it is, or, since its process is gone, is asked for
	instance Instance
	no       uint64
	retries  int32
	tries    int32
	said     Said // by its host, of whose end the owner has yet to hear
	outcome  *Outcome
}

// unsent is the number of a call that was not sent, from which on they are beyond all that were.
const unsent = 1 << 62

// NewWays makes the core of a job whose actors nobody has called, or that of an owner that was made anew. Channels are numbered from the one after last: an owner before
// this one may have given others.
func NewWays(last Channel) *Ways {
	return &Ways{last: last, actors: make(map[ids.ActorID]*place), channels: make(map[Channel]*lane), adopted: make(map[ids.TaskID]*adoption), clients: make(map[ids.ClientID]*caller)}
}

// Step takes an event. The effects are valid until the next step.
func (w *Ways) Step(_ int64, ev WaysEvent) []WaysEffect {
	clear(w.effects)
	w.effects = w.effects[:0]
	switch e := ev.(type) {
	case Began:
		w.began(e)
	case Ended:
		w.instanceEnded(e)
	case HostGone:
		w.hostGone(e)
	case WayAsked:
		w.wayAsked(e)
	case WordAsked:
		w.wordAsked(e)
	case Lives:
		w.lives(e.Channel)
	case HungUp:
		w.hungUp(e.Channel)
	case Adopting:
		w.adopting(e)
	case Submitted:
		w.submitted(e)
	case Resolved:
		if a := w.adopted[e.Call]; a != nil {
			a.resolved = true
			w.leave(a)
		}
	case Freed:
		w.freed(e.Call)
	case CallerGone:
		w.callerGone(e.Client)
	case Told:
		w.told(e)
	case NeverCame:
		if a := w.at(e.Channel, e.No); a != nil {
			w.make(a)
		}
	}
	return w.effects
}

func (w *Ways) do(e WaysEffect) { w.effects = append(w.effects, e) }

// Knows tells whether a call was adopted, or submitted.
func (w *Ways) Knows(call ids.TaskID) bool { return w.adopted[call] != nil }

func (w *Ways) place(id ids.ActorID) *place {
	p := w.actors[id]
	if p == nil {
		p = &place{id: id, lanes: make(map[Channel]*lane), past: make(map[Instance]*past)}
		w.actors[id] = p
	}
	return p
}

func (w *Ways) client(id ids.ClientID) *caller {
	c := w.clients[id]
	if c == nil {
		c = &caller{asking: make(map[ids.ActorID]*place), lanes: make(map[Channel]*lane), calls: make(map[ids.TaskID]*adoption)}
		w.clients[id] = c
	}
	return c
}

// isGone tells whether a process has ended.
func (w *Ways) isGone(id ids.ClientID) bool {
	c := w.clients[id]
	return c != nil && c.gone
}

func (w *Ways) began(e Began) {
	p := w.place(e.Actor)
	p.instance, p.host = e.Instance, e.Host
	for _, c := range w.asking(p) {
		w.open(p, c)
	}
}

// asking are the processes that wait for an actor's next instance. They wait no more.
func (w *Ways) asking(p *place) []ids.ClientID {
	all := p.asking
	p.asking = nil
	for _, c := range all {
		delete(w.client(c).asking, p.id)
	}
	return all
}

func (w *Ways) open(p *place, client ids.ClientID) {
	w.last++
	l := &lane{id: w.last, client: client, actor: p.id, instance: p.instance, host: p.host, calls: make(map[ids.TaskID]*adoption)}
	w.channels[l.id], p.lanes[l.id] = l, l
	w.client(client).lanes[l.id] = l
	w.do(WaysEffect{Do: Open, Client: client, Host: p.host, Actor: p.id, Instance: p.instance, Channel: w.last})
}

func (w *Ways) wayAsked(e WayAsked) {
	p := w.place(e.Actor)
	switch {
	case p.dead:
		w.do(WaysEffect{Do: SayNoWay, Client: e.Client, Actor: p.id, Dead: true, Err: p.why})
	case e.ByOwner:
		w.do(WaysEffect{Do: GoByOwner, Client: e.Client, Actor: p.id})
	case p.instance != 0:
		w.open(p, e.Client)
	case p.why != nil && !e.Keeps: // it was there
		w.do(WaysEffect{Do: SayNoWay, Client: e.Client, Actor: p.id, Err: p.why})
	default:
		p.asking = append(p.asking, e.Client)
		w.client(e.Client).asking[p.id] = p
	}
}

// instanceEnded ends an instance: each process that has a channel to it is told.
func (w *Ways) instanceEnded(e Ended) {
	p := w.place(e.Actor)
	if p.past[e.Instance] != nil {
		return
	}
	if e.Instance != 0 {
		p.past[e.Instance] = &past{Ended: e}
	}
	if p.instance == e.Instance {
		p.instance, p.host, p.why = 0, 0, e.Err
	}
	if e.Dead {
		p.dead, p.why = true, e.Err
		for _, c := range w.asking(p) {
			w.do(WaysEffect{Do: SayNoWay, Client: c, Actor: p.id, Dead: true, Err: e.Err})
			w.maybeForget(c)
		}
	}
	for _, l := range p.lanesOf(e.Instance) {
		w.sayOver(l, e)
		for _, a := range inOrder(l.calls) { // what the host has said before
			if a.said != SaidNothing {
				w.afterEnd(a, a.said != SaidWaits, a.outcome)
			}
		}
	}
}

// lanesOf are the channels to an instance, in order.
func (p *place) lanesOf(of Instance) (out []*lane) {
	for _, id := range slices.Sorted(maps.Keys(p.lanes)) {
		if l := p.lanes[id]; l.instance == of {
			out = append(out, l)
		}
	}
	return out
}

func (w *Ways) sayOver(l *lane, e Ended) {
	if w.isGone(l.client) {
		return
	}
	over := Over{Channel: l.id, Next: NextInstance, Keeps: e.Keeps, Err: e.Err}
	if e.Dead {
		over.Next = NextNone
	}
	w.do(WaysEffect{Do: SayOver, Client: l.client, Actor: l.actor, Channel: l.id, Over: over})
}

// wordAsked is answered when something is known of the instance. If it lives, as far as is known, its process is asked: its end may be on its way.
func (w *Ways) wordAsked(e WordAsked) {
	c := e.Channel
	l := w.channels[c]
	if l == nil {
		if !w.isGone(e.Client) {
			why := errs.New(errs.CodeActorUnavailable, "actor %v: the owner of the job was made anew; the actor may have run the call", e.Actor)
			w.do(WaysEffect{Do: SayOver, Client: e.Client, Actor: e.Actor, Channel: c, Over: Over{Channel: c, Next: NextSame, Err: why}})
		}
		return
	}
	if w.actors[l.actor].past[l.instance] != nil {
		return // it was told
	}
	if !l.asked {
		l.asked = true
		w.do(WaysEffect{Do: AskHost, Host: l.host, Instance: l.instance, Channel: c})
	}
}

func (w *Ways) lives(c Channel) {
	l := w.channels[c]
	if l == nil || !l.asked || w.isGone(l.client) || w.actors[l.actor].past[l.instance] != nil {
		return
	}
	why := errs.New(errs.CodeActorUnavailable, "actor %v: the connection to its process has broken; the actor lives, and may have run the call", l.actor)
	w.do(WaysEffect{Do: SayOver, Client: l.client, Actor: l.actor, Channel: c, Over: Over{Channel: c, Next: NextSame, Err: why}})
}

func (w *Ways) hungUp(c Channel) {
	l := w.channels[c]
	if l == nil || l.hungUp {
		return
	}
	l.hungUp = true
	w.maybeDrop(l)
}

// maybeDrop drops a channel of which nobody asks anything any more.
func (w *Ways) maybeDrop(l *lane) {
	if !l.hungUp || len(l.calls) > 0 {
		return
	}
	delete(w.channels, l.id)
	delete(w.actors[l.actor].lanes, l.id)
	delete(w.client(l.client).lanes, l.id)
	w.maybeForget(l.client)
	w.maybeForgetPast(w.actors[l.actor], l.instance)
	w.do(WaysEffect{Do: DropChannel, Host: l.host, Instance: l.instance, Channel: l.id})
}

// maybeForgetPast drops an instance that has ended, with its process, and of which nobody asks anything.
func (w *Ways) maybeForgetPast(p *place, of Instance) {
	if past := p.past[of]; past != nil && past.buried && len(p.lanesOf(of)) == 0 {
		delete(p.past, of)
	}
}

// maybeForget drops a process with which there is nothing.
func (w *Ways) maybeForget(id ids.ClientID) {
	if c := w.clients[id]; c != nil && len(c.asking)+len(c.lanes)+len(c.calls) == 0 {
		delete(w.clients, id)
	}
}

// inOrder are some calls of one process, in the order in which it has made them.
func inOrder(calls map[ids.TaskID]*adoption) []*adoption {
	return slices.SortedFunc(maps.Values(calls), func(a, b *adoption) int {
		return cmp.Or(cmp.Compare(a.order, b.order), bytes.Compare(a.actor[:], b.actor[:]))
	})
}
