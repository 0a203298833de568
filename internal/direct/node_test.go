package direct

import (
	"cmp"
	"slices"

	"mobula/internal/errs"
	"mobula/internal/ids"
)

// node is a model of the owner of a job: what it has to do for calls that go straight.
type node struct {
	s         *sim
	adopted   map[ids.TaskID]*adoption
	pipes     map[Channel]*pipe
	channels  []*pipe
	instances []*instance
	current   *instance // nil: there is none
	lives     int
	restarts  int // left
	keeps     bool
	dead      bool
	asking    []*process // wait for the next instance
	nextChan  Channel
	gone      map[*process]bool
	calls     []*adoption // that it has sent to the current instance, or are to be
	why       *errs.Error
}

// ownersChannel is by which the owner sends calls of its own.
const ownersChannel Channel = 1 << 40

// adoption is a call that the owner knows: adopted, or its own.
type adoption struct {
	call     *Call
	by       *process
	own      bool      // it sends it itself
	pushed   *instance // where it was sent last; nil: it waits for the next
	instance Instance
	channel  Channel
	no       uint64
	tries    int32
	outcome  *Outcome
}

func (n *node) knows(id ids.TaskID) bool { return n.adopted[id] != nil }

func (n *node) start() {
	n.lives++
	h := &instance{s: n.s, id: Instance(n.lives), core: NewHost(HostConfig{Groups: []int{1, 2}, Unread: 60}, NewHostMemory())}
	n.instances = append(n.instances, h)
	n.current = h
	h.fromN = append(h.fromN, Linked{ownersChannel})
	for _, p := range n.asking {
		n.open(p)
	}
	n.asking = nil
	n.pushAll()
}

func (n *node) open(p *process) {
	if p.dead {
		return
	}
	n.nextChan++
	c := &pipe{id: n.nextChan, from: p, host: n.current, page: make([]uint64, 2)}
	n.pipes[c.id] = c
	n.channels = append(n.channels, c)
	n.current.fromN = append(n.current.fromN, Linked{c.id})
	p.fromN = append(p.fromN, Opened{n.current.id, c.id, 100})
}

func (n *node) askWay(p *process) {
	switch {
	case n.dead:
		p.fromN = append(p.fromN, NoWay{true, n.why})
	case n.s.rnd.IntN(10) == 0:
		p.fromN = append(p.fromN, GoesByOwner{})
	case n.current == nil && !n.keeps:
		p.fromN = append(p.fromN, NoWay{false, errs.New(errs.CodeActorUnavailable, "restarting")})
	case n.current == nil:
		n.asking = append(n.asking, p)
	default:
		n.open(p)
	}
}

// askWord is answered as soon as something is known of the instance: what has ended it may be on its way here.
func (n *node) askWord(p *process, c Channel) {
	of := n.pipes[c].host.id
	if h := n.current; h == nil || h.id != of || n.pipes[c].cut {
		n.sayOver(p, of, c)
	} // else the word follows: its process has ended
}

func (n *node) sayOver(p *process, of Instance, c Channel) {
	if p.dead {
		return
	}
	next, why := NextInstance, n.why
	if h := n.current; h != nil && h.id == of {
		next, why = NextSame, errs.New(errs.CodeActorUnavailable, "channel %d was cut", c)
	}
	if n.dead && n.instances[len(n.instances)-1].id == of {
		next = NextNone
	}
	p.fromN = append(p.fromN, Over{Channel: c, Next: next, Keeps: n.keeps, Begun: n.pipes[c].page, Err: why})
}

// processGone deals with what the process of an instance has not said before it died: it may have begun.
func (n *node) processGone(h *instance) {
	n.instanceGone(h)
	for _, a := range append([]*adoption(nil), n.calls...) {
		if a.pushed == h {
			n.afterEnd(a, true, nil)
		}
	}
	for _, id := range n.ids() {
		if a := n.adopted[id]; a.outcome == nil && !a.own && n.knowsGone(a.by) && a.instance == h.id {
			n.afterEnd(a, a.no <= 1<<32, nil)
		}
	}
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
		for _, a := range append([]*adoption(nil), n.calls...) {
			if a.pushed == nil {
				n.afterEnd(a, false, nil)
			}
		}
	}
	for _, c := range n.channels {
		if c.host == h {
			n.sayOver(c.from, h.id, c.id)
		}
	}
	if n.dead {
		for _, p := range n.asking {
			p.fromN = append(p.fromN, NoWay{true, n.why})
		}
		n.asking = nil
	}
}

func (n *node) ids() (out []ids.TaskID) {
	for _, x := range n.s.order {
		if n.adopted[x.call.ID] != nil {
			out = append(out, x.call.ID)
		}
	}
	return out
}

// afterEnd decides about a call that the owner answers for, whose instance has ended.
func (n *node) afterEnd(a *adoption, begun bool, culprit *Outcome) {
	if i := index(n.calls, a); i >= 0 {
		n.calls = append(n.calls[:i:i], n.calls[i+1:]...)
	}
	a.pushed = nil
	switch {
	case !n.dead && !begun && n.keeps:
	case !n.dead && begun && a.tries < a.call.Retries:
		a.tries++
	default:
		if culprit == nil {
			culprit = &Outcome{Err: n.why}
		}
		n.resolve(a, culprit)
		n.pushAll()
		return
	}
	n.send(a)
}

func index(l []*adoption, a *adoption) int {
	for i, x := range l {
		if x == a {
			return i
		}
	}
	return -1
}

func (n *node) resolve(a *adoption, o *Outcome) {
	if a.outcome != nil {
		n.s.fatalf("call %v is resolved twice: %+v, %+v", short(a.call.ID), a.outcome, o)
	}
	a.outcome = o
	if a.own && !a.by.dead {
		a.by.fromN = append(a.by.fromN, OwnerAnswered{a.call, o})
	}
}

// send sends a call of the owner's own, now or to the next instance.
func (n *node) send(a *adoption) {
	a.own = true
	if n.dead {
		n.resolve(a, &Outcome{Err: n.why})
		return
	}
	n.calls = append(n.calls, a)
	slices.SortFunc(n.calls, func(a, b *adoption) int { return cmp.Compare(n.s.specs[a.call.ID].at, n.s.specs[b.call.ID].at) })
	n.pushAll()
}

// pushAll sends calls in order, once it is known which of those that an earlier instance had are among them.
func (n *node) pushAll() {
	for _, a := range n.calls {
		if a.pushed != nil && a.pushed != n.current {
			return
		}
	}
	for _, a := range n.calls {
		if h := n.current; h != nil && a.pushed == nil {
			a.pushed = h
			h.fromN = append(h.fromN, Arrived{ownersChannel, &Incoming{ID: a.call.ID, Group: a.call.Group}})
		}
	}
}

func (n *node) submit(k *Call, p *process) {
	a := n.adopted[k.ID]
	if a == nil {
		a = &adoption{call: k, by: p}
		n.adopted[k.ID] = a
	} else if n.knowsGone(a.by) { // its caller runs again
		a.call, a.by = k, p
		if a.outcome != nil {
			if !p.dead {
				p.fromN = append(p.fromN, OwnerAnswered{k, a.outcome})
			}
			return
		}
		if a.own {
			return
		}
	}
	a.tries = k.Tries()
	n.send(a)
}

// done is the end of a call that the owner had sent.
func (n *node) done(h *instance, id ids.TaskID, said Said, o *Outcome) {
	a := n.adopted[id]
	if i := index(n.calls, a); i < 0 {
		return
	} else if said == SaidNothing {
		n.calls = append(n.calls[:i:i], n.calls[i+1:]...)
		n.resolve(a, o)
		n.pushAll()
		return
	}
	n.instanceGone(h)
	n.afterEnd(a, said != SaidWaits, o)
}

func (n *node) adopt(p *process, k *Call, instance Instance, c Channel, no uint64, tries int32, o *Outcome) {
	a := n.adopted[k.ID]
	if a == nil {
		a = &adoption{call: k, by: p}
		n.adopted[k.ID] = a
	}
	if !p.dead {
		p.fromN = append(p.fromN, Adopted{k})
	}
	if a.own {
		return
	}
	if a.by != p && a.outcome != nil { // of an attempt of its caller before: that one counts
		return
	}
	a.instance, a.channel, a.no, a.tries = instance, c, no, tries
	if o != nil {
		n.resolve(a, o)
	}
}

func (n *node) report(id ids.TaskID, o *Outcome) { n.resolve(n.adopted[id], o) }

func (n *node) knowsGone(p *process) bool { return n.gone[p] }

// clientGone takes over what a process leaves behind.
func (n *node) clientGone(p *process) {
	if n.gone == nil {
		n.gone = map[*process]bool{}
	}
	n.gone[p] = true
	n.s.logf("the node knows that %s is gone", p.name)
	unsent := uint64(1 << 32)
	for _, id := range n.ids() {
		a := n.adopted[id]
		if a.by != p || a.outcome != nil || a.own {
			continue
		}
		c := n.pipes[a.channel]
		if c == nil { // it was not sent: it goes behind what was
			if c = n.lastPipe(p); c != nil {
				unsent++
				a.channel, a.no, a.instance = c.id, unsent, c.host.id
			}
		}
		switch {
		case c == nil:
			n.send(a)
		case c.host.buried && a.no > 1<<32:
			n.send(a)
		case c.host.buried: // what it had begun is known to nobody
			n.afterEnd(a, true, nil)
		default:
			c.host.fromN = append(c.host.fromN, Where{c.id, []uint64{a.no}})
		}
	}
}

// lastPipe is the last channel of a process.
func (n *node) lastPipe(p *process) (last *pipe) {
	for _, c := range n.channels {
		if c.from == p {
			last = c
		}
	}
	return last
}

// told is a host's word on an adopted call whose caller is gone.
func (n *node) told(h *instance, c Channel, no uint64, said Said, o *Outcome) {
	a := n.at(c, no)
	if a == nil {
		return
	}
	if said == SaidNothing {
		n.s.seen["adopted and told by the host"]++
		n.resolve(a, o)
		return
	}
	n.instanceGone(h)
	n.afterEnd(a, said != SaidWaits, o)
}

func (n *node) notHere(c Channel, no uint64) {
	if a := n.at(c, no); a != nil {
		n.s.seen["adopted and never sent"]++
		n.send(a)
	}
}

func (n *node) at(c Channel, no uint64) *adoption {
	for _, id := range n.ids() {
		if a := n.adopted[id]; a.channel == c && a.no == no && a.outcome == nil && !a.own {
			return a
		}
	}
	return nil
}

func (n *node) hungUp(c *pipe) { c.host.fromN = append(c.host.fromN, Dropped{c.id}) }
