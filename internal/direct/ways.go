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
	byOwner  bool // no channel may lead to instance
	dead     bool
	useless  bool // nobody can call it any more
	why      *errs.Error
	asking   []ids.ClientID // they wait for the next instance
	lanes    map[Channel]*lane
	past     map[Instance]*past
}

// past is an instance that has ended, as long as there is a channel to it.
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
	resolved bool
	strayed  bool    // it was sent to a channel that is not known
	channel  Channel // where it is, or, since its process is gone, is asked for
	instance Instance
	no       uint64
	retries  int32
	tries    int32
	said     Said // by its host, of whose end the owner has yet to hear
	outcome  *Outcome
	unwanted bool // somebody has cancelled it
	wish     Wish // how
}

// unsent is the number of a call that was not sent, from which on they are beyond all that were.
const unsent = 1 << 62

// NewWays makes the core of a job whose actors nobody has called.
func NewWays() *Ways {
	return &Ways{actors: make(map[ids.ActorID]*place), channels: make(map[Channel]*lane), adopted: make(map[ids.TaskID]*adoption), clients: make(map[ids.ClientID]*caller)}
}

// CountFrom gives the next channel the number after last: those of a core before this one may still be in use.
func (w *Ways) CountFrom(last Channel) { w.last = max(w.last, last) }

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
	case ProcessGone:
		w.processGone(e.Host)
	case Forgotten:
		w.forgotten(e.Actor)
	case HasChannel:
		w.hasChannel(e)
	case WayAsked:
		w.wayAsked(e)
	case WordAsked:
		w.wordAsked(e.Channel)
	case Lives:
		w.lives(e.Channel)
	case HungUp:
		w.hungUp(e.Channel)
	case Adopting:
		w.adopting(e)
	case CancelAsked:
		w.cancelAsked(e)
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
		p = &place{id: id}
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
	p.instance, p.host, p.byOwner = e.Instance, e.Host, e.ByOwner
	for _, c := range w.asking(p) {
		if !e.ByOwner {
			w.open(p, c)
			continue
		}
		w.do(WaysEffect{Do: GoByOwner, Client: c, Actor: p.id})
		w.maybeForget(c)
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
	w.enter(&lane{id: w.last, client: client, actor: p.id, instance: p.instance, host: p.host})
	w.do(WaysEffect{Do: Open, Client: client, Host: p.host, Actor: p.id, Instance: p.instance, Channel: w.last})
}

// enter takes a channel into the tables.
func (w *Ways) enter(l *lane) {
	l.calls = make(map[ids.TaskID]*adoption)
	w.channels[l.id] = l
	p := w.place(l.actor)
	if p.lanes == nil {
		p.lanes = make(map[Channel]*lane)
	}
	p.lanes[l.id] = l
	w.client(l.client).lanes[l.id] = l
}

// hasChannel takes a channel that a core before this one has given. What others were told of the end of its instance this one's process is told too.
func (w *Ways) hasChannel(e HasChannel) {
	if w.channels[e.Channel] != nil {
		return
	}
	l := &lane{id: e.Channel, client: e.Client, actor: e.Actor, instance: e.Instance, host: e.Host}
	w.CountFrom(e.Channel) // no other is to have its number
	w.enter(l)
	if past := w.place(e.Actor).past[e.Instance]; past != nil {
		w.sayOver(l, past.Ended)
	}
}

func (w *Ways) wayAsked(e WayAsked) {
	p := w.place(e.Actor)
	switch {
	case p.dead:
		w.do(WaysEffect{Do: SayNoWay, Client: e.Client, Actor: p.id, Dead: true, Err: p.why})
	case e.ByOwner, p.instance != 0 && p.byOwner:
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
	if p.past == nil {
		p.past = make(map[Instance]*past)
	}
	p.past[e.Instance] = &past{Ended: e}
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
	w.maybeForgetPast(p, e.Instance)
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
func (w *Ways) wordAsked(c Channel) {
	l := w.channels[c]
	if l == nil {
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
	p := w.actors[l.actor]
	delete(p.lanes, l.id)
	delete(w.client(l.client).lanes, l.id)
	w.maybeForget(l.client)
	w.maybeForgetPast(p, l.instance)
	w.maybeForgetPlace(p)
	w.do(WaysEffect{Do: DropChannel, Host: l.host, Instance: l.instance, Channel: l.id})
}

// maybeForgetPast drops an instance that has ended, and of which nobody asks anything.
func (w *Ways) maybeForgetPast(p *place, of Instance) {
	if p.past[of] != nil && len(p.lanesOf(of)) == 0 {
		delete(p.past, of)
	}
}

// forgotten drops an actor, when there is no channel to it any more.
func (w *Ways) forgotten(id ids.ActorID) {
	if p := w.actors[id]; p != nil {
		p.useless = true
		w.maybeForgetPlace(p)
	}
}

func (w *Ways) maybeForgetPlace(p *place) {
	if p.useless && len(p.lanes)+len(p.asking) == 0 {
		delete(w.actors, p.id)
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

// Known counts the actors, channels, processes and calls of which something is kept.
func (w *Ways) Known() int { return len(w.actors) + len(w.channels) + len(w.clients) + len(w.adopted) }
