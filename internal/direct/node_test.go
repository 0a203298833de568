package direct

import (
	"cmp"
	"slices"

	"mobula/internal/errs"
	"mobula/internal/ids"
)

// node is the owner of a job: a Ways, and a model of the rest, which has instances made and makes calls itself.
type node struct {
	s         *sim
	ways      *Ways
	pipes     map[Channel]*pipe
	channels  []*pipe
	instances []*instance
	current   *instance // nil: there is none
	restarts  int       // left
	keeps     bool
	dead      bool
	why       *errs.Error
	outcomes  map[ids.TaskID]*Outcome
	tasks     []*ownCall              // that it makes itself and that have no outcome, in order
	submitted map[ids.TaskID]*process // by whom, last
	told      map[adopted1]bool       // what it was told of adopted calls
}

var theActor = ids.ActorID(ids.Derive(ids.RootTask(1, 1), 1))

// ownersChannel is by which the owner sends calls of its own.
const ownersChannel Channel = 1 << 40

// ownCall is a call that the owner makes.
type ownCall struct {
	call   *Call
	tries  int32
	pushed *instance // where it was sent last; nil: it waits for the next
}

// adopted1 is what is said once of an adopted call.
type adopted1 struct {
	by      *process
	call    ids.TaskID
	channel Channel
	no      uint64
	tries   int32
	outcome *Outcome
}

// stillThere asks a host's process whether it lives.
type stillThere struct{ Channel Channel }

func (stillThere) toHost() {}

func newNode(s *sim) *node {
	return &node{s: s, ways: NewWays(), submitted: map[ids.TaskID]*process{}, pipes: map[Channel]*pipe{}, outcomes: map[ids.TaskID]*Outcome{}, told: map[adopted1]bool{}, restarts: s.rnd.IntN(4), keeps: s.rnd.IntN(2) == 0}
}

func (n *node) step(e WaysEvent) {
	n.s.logf("  owner <- %T %+v", e, e)
	for _, f := range append([]WaysEffect(nil), n.ways.Step(n.s.now, e)...) {
		n.do(f)
	}
}

func (n *node) do(f WaysEffect) {
	say := func(e Event) {
		if p := n.process(f.Client); !p.dead {
			p.fromN = append(p.fromN, e)
		}
	}
	switch f.Do {
	case Open:
		h := n.instances[f.Instance-1]
		c := &pipe{id: f.Channel, from: n.process(f.Client), host: h, page: make([]uint64, 2)}
		n.pipes[c.id] = c
		n.channels = append(n.channels, c)
		h.fromN = append(h.fromN, Linked{c.id})
		say(Opened{h.id, c.id, 100})
	case GoByOwner:
		say(GoesByOwner{})
	case SayNoWay:
		say(NoWay{f.Dead, f.Err})
	case SayOver:
		f.Over.Begun = n.pipes[f.Channel].page
		say(f.Over)
	case AskHost:
		if h := n.instances[f.Instance-1]; !h.gone {
			h.fromN = append(h.fromN, stillThere{f.Channel})
		}
	case TellAdopted:
		p := n.process(f.Client)
		i := slices.IndexFunc(p.mine, func(x *spec) bool { return x.call.ID == f.Call })
		say(Adopted{p.mine[i].call})
	case AskWhere:
		h := n.instances[f.Instance-1]
		h.fromN = append(h.fromN, Where{f.Channel, []uint64{f.No}})
	case PassCancel:
		n.s.seen["cancelled by another"]++
		p := n.process(f.Client)
		i := slices.IndexFunc(p.mine, func(x *spec) bool { return x.call.ID == f.Call })
		say(Cancel{Call: p.mine[i].call, Wish: f.Wish})
	case AskEnd:
		n.s.seen["cancelled at the host"]++
		h := n.instances[f.Instance-1]
		h.fromN = append(h.fromN, Unwanted{Channel: f.Channel, No: f.No, Wish: f.Wish})
	case DropChannel:
		h := n.instances[f.Instance-1]
		h.fromN = append(h.fromN, Dropped{f.Channel})
	case ResolveCall:
		n.resolve(f.Call, f.Outcome)
	case MakeCall:
		n.send(&ownCall{call: n.s.specs[f.Call].call, tries: f.Tries})
	case AnswerCaller:
		n.answer(f.Call)
	}
}

func (n *node) process(id ids.ClientID) *process { return n.s.procs[id-1] }

func (n *node) knowsGone(p *process) bool { return n.ways.isGone(p.id) || n.s.buried[p] }

// start makes an instance.
func (n *node) start() {
	h := &instance{s: n.s, id: Instance(len(n.instances) + 1), core: NewHost(HostConfig{Groups: []int{1, 2}, Unread: 60}, NewHostMemory())}
	n.instances = append(n.instances, h)
	n.current = h
	h.fromN = append(h.fromN, Linked{ownersChannel})
	n.step(Began{Actor: theActor, Instance: h.id, Host: ids.ClientID(1000 + h.id)})
	n.pushAll()
}

// lose makes the owner anew. What the rest of it knows is in its log.
func (n *node) lose() {
	n.s.logf("the owner is made anew")
	n.s.seen["owner lost"]++
	last := n.ways.last
	n.ways, n.told = NewWays(), map[adopted1]bool{}
	n.ways.CountFrom(last)
	if h := n.current; h != nil {
		n.step(Began{Actor: theActor, Instance: h.id, Host: ids.ClientID(1000 + h.id)})
	}
	if n.dead {
		n.step(Ended{Actor: theActor, Dead: true, Err: n.why})
	}
	for _, p := range n.s.procs {
		if !p.dead {
			p.fromN = append(p.fromN, OwnerLost{})
		}
	}
}

// linked is told of a channel that an owner before this one had given.
func (n *node) linked(p *process, ch Channel, of Instance) {
	h := n.instances[of-1]
	n.step(HasChannel{Client: p.id, Actor: theActor, Instance: of, Host: ids.ClientID(1000 + of), Channel: ch})
	if n.current != h {
		n.step(Ended{Actor: theActor, Instance: of, Dead: n.dead, Keeps: n.keeps, Err: n.why})
	}
	if h.buried {
		n.step(HostGone{Actor: theActor, Instance: of})
	}
}

func (n *node) askWay(p *process) {
	n.step(WayAsked{Client: p.id, Actor: theActor, ByOwner: n.s.rnd.IntN(10) == 0, Keeps: n.keeps})
}

// processGone deals with what the process of an instance has not said before it died: it may have begun.
func (n *node) processGone(h *instance) {
	n.instanceGone(h)
	for _, t := range slices.Clone(n.tasks) {
		if t.pushed == h {
			n.afterEnd(t, true, nil)
		}
	}
	n.step(HostGone{Actor: theActor, Instance: h.id})
}

// instanceGone deals with the end of an instance.
func (n *node) instanceGone(h *instance) {
	if n.current != h {
		return
	}
	n.current = nil
	n.why = errs.New(errs.CodeActorUnavailable, "instance %v has ended", h.id)
	if n.restarts--; n.restarts < 0 {
		n.dead = true
		n.why = errs.New(errs.CodeActorDied, "instance %v has ended", h.id)
	}
	if n.dead || !n.keeps {
		for _, t := range slices.Clone(n.tasks) {
			if t.pushed == nil {
				n.afterEnd(t, false, nil)
			}
		}
	}
	n.step(Ended{Actor: theActor, Instance: h.id, Dead: n.dead, Keeps: n.keeps, Err: n.why})
}

// afterEnd decides about a call of the owner's own, whose instance has ended.
func (n *node) afterEnd(t *ownCall, begun bool, culprit *Outcome) {
	n.drop(t)
	t.pushed = nil
	switch {
	case !n.dead && !begun && n.keeps:
	case !n.dead && begun && t.tries < t.call.Retries:
		t.tries++
	default:
		if culprit == nil {
			culprit = &Outcome{Err: n.why}
		}
		n.over(t, culprit)
		return
	}
	n.send(t)
}

func (n *node) drop(t *ownCall) {
	n.tasks = slices.DeleteFunc(n.tasks, func(x *ownCall) bool { return x == t })
}

// over ends a call of the owner's own.
func (n *node) over(t *ownCall, o *Outcome) {
	n.drop(t)
	n.resolve(t.call.ID, o)
	n.step(Resolved{t.call.ID})
	n.answer(t.call.ID)
	n.pushAll()
}

func (n *node) resolve(id ids.TaskID, o *Outcome) {
	if was := n.outcomes[id]; was != nil {
		n.s.fatalf("call %v is resolved twice: %+v, %+v", short(id), was, o)
	}
	n.outcomes[id] = o
}

// answer gives a call's outcome to the process that has submitted it.
func (n *node) answer(id ids.TaskID) {
	p := n.submitted[id]
	if p == nil {
		return // it was adopted, and the owner has made it
	}
	if i := slices.IndexFunc(p.mine, func(x *spec) bool { return x.call.ID == id }); i >= 0 && !p.dead {
		p.fromN = append(p.fromN, OwnerAnswered{p.mine[i].call, n.outcomes[id]})
	}
}

// send sends a call of the owner's own, now or to the next instance.
func (n *node) send(t *ownCall) {
	if n.dead {
		n.over(t, &Outcome{Err: n.why})
		return
	}
	n.tasks = append(n.tasks, t)
	slices.SortFunc(n.tasks, func(a, b *ownCall) int {
		return cmp.Compare(n.s.specs[a.call.ID].at, n.s.specs[b.call.ID].at)
	})
	n.pushAll()
}

// pushAll sends calls in order, once it is known which of those that an earlier instance had are among them.
func (n *node) pushAll() {
	for _, t := range n.tasks {
		if t.pushed != nil && t.pushed != n.current {
			return
		}
	}
	for _, t := range n.tasks {
		if h := n.current; h != nil && t.pushed == nil {
			t.pushed = h
			h.fromN = append(h.fromN, &Arrived{ownersChannel, &Incoming{ID: t.call.ID, Group: t.call.Group}})
		}
	}
}

// logged tells whether a call is in the log of an owner before this one.
func (n *node) logged(id ids.TaskID) bool {
	return !n.ways.Knows(id) && (n.outcomes[id] != nil || slices.ContainsFunc(n.tasks, func(t *ownCall) bool { return t.call.ID == id }))
}

func (n *node) submit(k *Call, p *process) {
	n.submitted[k.ID] = p
	if n.logged(k.ID) {
		if n.outcomes[k.ID] != nil {
			n.answer(k.ID)
		}
		return
	}
	n.step(Submitted{Client: p.id, Call: k.ID, Actor: theActor, Tries: k.Tries()})
}

// done is the end of a call that the owner had sent.
func (n *node) done(h *instance, id ids.TaskID, said Said, o *Outcome) {
	i := slices.IndexFunc(n.tasks, func(t *ownCall) bool { return t.call.ID == id })
	if i < 0 {
		return
	}
	t := n.tasks[i]
	if said == SaidNothing {
		n.over(t, o)
		return
	}
	n.instanceGone(h)
	n.afterEnd(t, said != SaidWaits, o)
}

func (n *node) adopt(p *process, k *Call, c Channel, no uint64, tries int32, o *Outcome) {
	if n.logged(k.ID) {
		p.fromN = append(p.fromN, Adopted{k})
		return
	}
	once := adopted1{p, k.ID, c, no, tries, o}
	if n.told[once] && (c != 0 || o != nil) && n.s.seen["owner lost"] == 0 { // else it is said again
		n.s.fatalf("call %v is given to the owner twice: %+v", short(k.ID), once)
	}
	n.told[once] = true
	n.step(Adopting{Client: p.id, Call: k.ID, Actor: theActor, Order: k.Order(), Channel: c, No: no, Retries: k.Retries, Tries: tries, Outcome: o})
}

func (n *node) report(id ids.TaskID, o *Outcome) {
	n.resolve(id, o)
	n.step(Resolved{id})
}

// hostSaid is a host's word on an adopted call whose caller is gone. The end of the instance may come before it or after.
func (n *node) hostSaid(h *instance, c Channel, no uint64, said Said, o *Outcome) {
	if n.ways.at(c, no) != nil && said == SaidNothing {
		n.s.seen["adopted and told by the host"]++
	}
	if said != SaidNothing && n.s.rnd.IntN(2) == 0 {
		n.instanceGone(h)
	}
	n.step(Told{c, no, said, o})
	if said != SaidNothing {
		n.instanceGone(h)
	}
}

func (n *node) notHere(c Channel, no uint64) {
	if n.ways.at(c, no) != nil {
		n.s.seen["adopted and never sent"]++
	}
	n.step(NeverCame{c, no})
}
