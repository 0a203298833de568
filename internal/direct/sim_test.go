package direct

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/internal/testkit"
)

// sim is some processes that call one actor, the actor's process, and a node with the owner of the job: each a core or a model, and queues of messages between
// them, of which the seed chooses the next one.
type sim struct {
	rnd    *rand.Rand
	procs  []*process
	node   *node
	fault  mutant
	now    int64
	ran    []*run // in order
	byCall map[ids.TaskID][]*run
	specs  map[ids.TaskID]*spec
	of     map[*Call]*spec
	order  []*spec
	log    []string
	quiet  bool           // no faults any more
	seen   map[string]int // what came to pass
	buried map[*process]bool
}

// mutant is a fault that is planted.
type mutant string

// spec is what a test knows of a call.
type spec struct {
	call     *Call
	by       *process
	at       int // in the order of all
	seq      int // among the calls of its caller
	settled  *Outcome
	left     bool // its reference was let go
	released bool
	told     bool // the owner was written that there is such a call
	repeats  bool // its caller runs again if its process dies
}

// run is one execution.
type run struct {
	id       ids.TaskID
	instance Instance
	n        int
}

// process is one that calls.
type process struct {
	s      *sim
	id     ids.ClientID
	name   string
	core   *Caller
	dead   bool
	toNode []func()           // what it has written to the node
	to     map[Channel]*pipe  // its channels
	seqs   map[ids.TaskID]int // calls of each caller
	fromN  []Event            // from the node
	mine   []*spec
}

// pipe is one channel, both ways.
type pipe struct {
	id       Channel
	from     *process
	host     *instance
	calls    []HostEvent // on their way to the host
	answers  []Event     // on their way back
	shut     bool        // the caller's end
	ended    bool        // the host was told so
	last     bool        // the host's end
	finished bool        // the caller was told so
	page     []uint64
	cut      bool // though both ends live
	answered map[uint64]*Outcome
}

// open tells whether what is written by the caller comes to the host.
func (c *pipe) open() bool { return !c.host.gone && !c.cut }

// instance is one life of the actor.
type instance struct {
	s       *sim
	id      Instance
	core    *Host
	gone    bool // the process
	buried  bool // the node knows
	toNode  []func()
	fromN   []HostEvent
	running []*Incoming
}

func newSim(seed uint64, fault mutant) *sim {
	s := &sim{rnd: rand.New(rand.NewPCG(seed, 1)), fault: fault, byCall: map[ids.TaskID][]*run{}, specs: map[ids.TaskID]*spec{}, of: map[*Call]*spec{}, seen: map[string]int{}, buried: map[*process]bool{}}
	s.node = newNode(s)
	for i := range 1 + s.rnd.IntN(3) {
		s.procs = append(s.procs, &process{s: s, id: ids.ClientID(i + 1), name: fmt.Sprint("p", i), core: NewCaller(NewMemory(), nil), to: map[Channel]*pipe{}, seqs: map[ids.TaskID]int{}})
	}
	s.node.start()
	return s
}

func (s *sim) logf(format string, args ...any) { s.log = append(s.log, fmt.Sprintf(format, args...)) }

// act does one thing that can be done.
func (s *sim) act() bool {
	s.now++
	var can []func()
	add := func(f func()) { can = append(can, f) }
	for _, p := range s.procs {
		if len(p.toNode) > 0 {
			add(func() { f := p.toNode[0]; p.toNode = p.toNode[1:]; f() })
		} else if p.dead && !s.node.knowsGone(p) {
			add(func() {
				s.buried[p] = true
				s.logf("the node knows that %s is gone", p.name)
				s.node.step(CallerGone{p.id})
				s.runAgain(p)
			})
		}
		if p.dead {
			continue
		}
		if len(p.fromN) > 0 {
			add(func() {
				e := p.fromN[0]
				p.fromN = p.fromN[1:]
				p.step(e)
			})
		}
	}
	for _, c := range s.node.channels {
		if h := c.host; !h.gone && h.linked(c) {
			if len(c.calls) > 0 {
				add(func() { e := c.calls[0]; c.calls = c.calls[1:]; h.step(e) })
			} else if (c.shut || c.cut || c.from.dead) && !c.ended {
				add(func() { c.ended = true; h.step(Unlinked{c.id}) })
			}
		}
		if !c.from.dead && c.from.to[c.id] == c {
			if len(c.answers) > 0 {
				add(func() { e := c.answers[0]; c.answers = c.answers[1:]; c.from.step(s.misread(c, e)) })
			} else if (c.last || c.cut || c.host.gone) && !c.finished {
				add(func() {
					c.finished = true
					c.from.step(Broke{c.id, !c.host.gone && !c.cut})
					if s.fault == againUnasked {
						c.from.step(Over{Channel: c.id, Keeps: true, Begun: make([]uint64, 2)})
					}
				})
			}
		}
	}
	for _, h := range s.node.instances {
		if len(h.toNode) > 0 {
			add(func() { f := h.toNode[0]; h.toNode = h.toNode[1:]; f() })
		} else if h.gone && !h.buried {
			add(func() { h.buried = true; s.node.processGone(h) })
		}
		if h.gone {
			continue
		}
		if len(h.fromN) > 0 {
			add(func() { e := h.fromN[0]; h.fromN = h.fromN[1:]; h.step(e) })
		}
		for i, in := range h.running {
			add(func() { h.finish(i, in) })
		}
	}
	if s.node.current == nil && !s.node.dead {
		add(s.node.start)
	}
	if len(can) == 0 {
		return false
	}
	can[s.rnd.IntN(len(can))]()
	return true
}

// misread plants faults in what a process reads.
func (s *sim) misread(c *pipe, e Event) Event {
	a, ok := e.(*Answered)
	if !ok || s.fault != oldAnswer {
		return e
	}
	for _, o := range s.node.channels {
		if o.from == c.from && o.id < c.id && o.answered[a.No] != nil {
			a.Outcome = o.answered[a.No]
		}
	}
	if c.answered == nil {
		c.answered = make(map[uint64]*Outcome)
	}
	c.answered[a.No] = a.Outcome
	return a
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// make has a process call.
func (s *sim) make(p *process) {
	caller := ids.Derive(ids.RootTask(1, 1), uint64(100+s.rnd.IntN(2)))
	caller = ids.Derive(caller, uint64(p.name[1]))
	p.seqs[caller]++
	k := &Call{ID: ids.Derive(caller, uint64(p.seqs[caller])), Caller: caller, Group: s.rnd.IntN(2), Bytes: int64(1 + s.rnd.IntN(40)), Retries: int32(max(0, s.rnd.IntN(4)-1))}
	k.ByOwner, k.Shared = s.rnd.IntN(8) == 0, s.rnd.IntN(5) == 0
	repeats := s.rnd.IntN(4) == 0 // its caller is a task with retries
	if repeats {
		k.Caller = ids.Derive(k.Caller, 7)
		k.ByOwner = s.fault != childTwice
	}
	if s.rnd.IntN(6) == 0 {
		k.Missing = 1
	}
	x := &spec{call: k, by: p, repeats: repeats, at: len(s.order), seq: p.seqs[caller]}
	s.specs[k.ID], s.of[k] = x, x
	s.order = append(s.order, x)
	p.mine = append(p.mine, x)
	s.logf("%s begins %v no %d of its caller, group %d retries %d owner %v missing %d", p.name, short(k.ID), x.seq, k.Group, k.Retries, k.ByOwner, k.Missing)
	p.step(Begin{k})
}

// runAgain has the tasks of a process that is gone, which have retries, run in another: each makes the calls that it had made, with the same ids.
func (s *sim) runAgain(gone *process) {
	for _, p := range s.procs {
		if p.dead {
			continue
		}
		for _, x := range gone.mine {
			if !x.repeats {
				continue
			}
			k := &Call{ID: x.call.ID, Caller: x.call.Caller, Group: x.call.Group, Bytes: x.call.Bytes, Retries: x.call.Retries, ByOwner: x.call.ByOwner, Shared: x.call.Shared}
			y := &spec{call: k, by: p, at: x.at, seq: x.seq, repeats: true}
			s.of[k] = y
			p.mine = append(p.mine, y)
			s.seen["its task ran again"]++
			p.step(Begin{k})
		}
		return
	}
}

// disturb has something happen to a process, a call or a reference.
func (s *sim) disturb() {
	if s.rnd.IntN(20) == 0 {
		s.cancelFromElsewhere()
	}
	p := s.procs[s.rnd.IntN(len(s.procs))]
	if p.dead {
		return
	}
	var x *spec
	if len(p.mine) > 0 {
		x = p.mine[s.rnd.IntN(len(p.mine))]
	}
	switch n := s.rnd.IntN(20); {
	case n < 8:
		s.make(p)
	case n < 11 && x != nil:
		if x.call.missing > 0 {
			var err *errs.Error
			if s.rnd.IntN(5) == 0 {
				err = errs.New(errs.CodeTaskFailed, "an argument")
			}
			p.step(Argument{Call: x.call, Err: err, Bytes: int64(s.rnd.IntN(30))})
		}
	case n < 14 && x != nil && !x.released:
		s.logf("%s: a reference to %v leaves", p.name, short(x.call.ID))
		p.step(Leaves{x.call})
	case n == 14 && x != nil && s.rnd.IntN(2) == 0:
		if !x.released {
			x.released = true
			p.step(Released{x.call})
		}
	case n == 15 && x != nil:
		e := Cancel{Call: x.call, Wish: s.wish()}
		if s.rnd.IntN(4) == 0 {
			e = Cancel{Call: x.call, Why: errs.New(errs.CodeDeadlock, "it waits for itself")}
		}
		p.step(e)
	case n == 16 && x != nil && s.rnd.IntN(3) == 0:
		p.step(Expired{x.call})
	case n == 17 && !s.quiet && s.rnd.IntN(3) == 0:
		if h := s.node.current; h != nil && !h.gone {
			h.die("")
		}
	case n == 18 && !s.quiet && s.rnd.IntN(6) == 0:
		s.logf("%s dies", p.name)
		s.seen["process dies"]++
		p.dead = true
		p.fromN = nil
	case n == 18 && !s.quiet && s.rnd.IntN(6) == 0:
		for _, c := range s.node.channels {
			if c.from == p && p.to[c.id] == c && !c.cut && !c.host.gone && s.rnd.IntN(3) == 0 {
				s.logf("channel %d is cut", c.id)
				s.seen["cut"]++
				c.cut, c.calls, c.answers = true, nil, nil
			}
		}
	case n == 18 && !s.quiet && s.rnd.IntN(4) == 0:
		s.node.lose()
	case n == 19:
		for _, c := range s.node.channels {
			if c.from == p && s.rnd.IntN(4) == 0 {
				p.step(Idle{c.id})
			}
		}
	}
}

// cancelFromElsewhere has another process cancel a call that was adopted.
func (s *sim) cancelFromElsewhere() {
	var those []*spec
	for _, p := range s.procs {
		for _, x := range p.mine {
			if a := s.node.ways.adopted[x.call.ID]; a != nil && !a.own && !a.resolved {
				those = append(those, x)
			}
		}
	}
	if len(those) > 0 {
		x := those[s.rnd.IntN(len(those))]
		s.node.step(CancelAsked{x.call.ID, s.wish()})
	}
}

func (s *sim) wish() Wish { return Wish{Force: s.rnd.IntN(3) == 0} }

func short(id ids.TaskID) string { return id.String()[len(id.String())-6:] }

// failure is a promise that was broken.
type failure string

// fatalf ends the simulation.
func (s *sim) fatalf(format string, args ...any) { panic(failure(fmt.Sprintf(format, args...))) }

func (p *process) step(e Event) {
	s := p.s
	s.logf("  %s <- %T %s", p.name, e, tell(e))
	if o, ok := e.(Opened); ok {
		p.to[o.Channel] = s.node.pipes[o.Channel]
	}
	if _, ok := e.(Begin); ok && s.fault == orderLost {
		defer p.core.overlook()()
	}
	if s.rnd.IntN(20) == 0 {
		p.loseCore(e)
	}
	effects := append([]Effect(nil), p.core.Step(s.now, e)...)
	for _, x := range p.mine {
		if x.call.kept != x.call.standing {
			s.fatalf("a step has changed %v and not written it down: %+v, %+v", short(x.call.ID), x.call.kept, x.call.standing)
		}
	}
	if s.fault == ackEarly {
		slices.SortStableFunc(effects, func(a, b Effect) int { return cmp.Compare(b.Do, a.Do) * btoi(a.Do == AckUpTo || b.Do == AckUpTo) })
	}
	for _, f := range effects {
		p.do(f)
		if !s.quiet && s.rnd.IntN(400) == 0 {
			s.logf("%s dies between two effects", p.name)
			s.seen["process dies"]++
			p.dead, p.fromN = true, nil
			return
		}
	}
	if over := p.core.Held() - budget; over > 0 {
		p.step(Relieve{over})
	}
}

// budget is how many bytes of results a process may keep to itself.
const budget = 40

// overlook has a core not see which calls of a caller are under way, until the function is called that it gives.
func (c *Caller) overlook() (restore func()) {
	if c.ch == nil {
		return func() {}
	}
	var back []func()
	for _, k := range c.ch.flight.All() {
		if k != nil {
			by := k.Caller
			back = append(back, func() { k.Caller = by })
			k.Caller = ids.TaskID{}
		}
	}
	return func() {
		for _, f := range back {
			f()
		}
	}
}

// loseCore has a core panic in the middle of an event, and another take its place.
func (p *process) loseCore(e Event) {
	p.s.seen["core lost"]++
	p.core.step(e)
	var calls []*Call
	for _, x := range p.mine {
		calls = append(calls, x.call)
	}
	p.s.rnd.Shuffle(len(calls), func(i, j int) { calls[i], calls[j] = calls[j], calls[i] })
	p.core = NewCaller(p.core.memory, calls)
}

func tell(e any) string {
	switch e := e.(type) {
	case *Answered:
		return fmt.Sprintf("channel %d no %d ack %d said %d %+v", e.Channel, e.No, e.AckNo, e.Said, e.Outcome)
	case OwnerAnswered:
		return fmt.Sprintf("%s %+v", short(e.Call.ID), e.Outcome)
	case Begin:
		return short(e.Call.ID)
	case Argument:
		return short(e.Call.ID)
	case Cancel:
		return short(e.Call.ID)
	case Expired:
		return short(e.Call.ID)
	case Leaves:
		return short(e.Call.ID)
	case Adopted:
		return short(e.Call.ID)
	case *Arrived:
		return fmt.Sprintf("channel %d %s", e.Channel, short(e.Call.ID))
	case *Finished:
		return fmt.Sprintf("%s panicked %v", short(e.Call.ID), e.Panicked)
	}
	return fmt.Sprintf("%+v", e)
}

func (p *process) do(f Effect) {
	s, n := p.s, p.s.node
	write := func(g func()) { p.toNode = append(p.toNode, g) }
	k := f.Call
	switch f.Do {
	case AskWay:
		write(func() { n.askWay(p) })
	case AskWord:
		ch := f.Channel
		write(func() { n.step(WordAsked{ch}) })
	case Send:
		c := p.to[f.Channel]
		if c == nil {
			s.fatalf("%s sends on channel %d, which it has not", p.name, f.Channel)
		}
		if k.Shared && !s.of[k].told {
			s.fatalf("call %v is sent, and the owner is to be told of it before", short(k.ID))
		}
		in := &Incoming{ID: k.ID, Group: k.Group, Payload: k}
		if c.open() {
			c.calls = append(c.calls, &Arrived{f.Channel, in})
			if s.fault == numberTwice && s.rnd.IntN(20) == 0 {
				c.calls = append(c.calls, &Arrived{f.Channel, &Incoming{ID: k.ID, Group: k.Group}})
			}
		}
	case Withdraw:
		if c := p.to[f.Channel]; c != nil && c.open() {
			c.calls = append(c.calls, Unwanted{f.Channel, f.No, f.Wish, f.Outcome})
		}
	case Submit:
		s.seen["by the owner"]++
		write(func() { n.submit(k, p) })
	case Revoke:
		write(func() {})
	case Settle:
		x := s.of[k]
		if x.settled != nil {
			s.fatalf("call %v is settled twice: %+v, %+v", short(k.ID), x.settled, f.Outcome)
		}
		x.settled = f.Outcome
		s.logf("    %v is settled: %+v", short(k.ID), f.Outcome)
		s.check(x, f.Outcome)
	case Adopt:
		s.seen["adopted"]++
		s.of[k].told = true
		tries, channel, no, o := k.Tries(), f.Channel, f.No, f.Outcome
		write(func() { n.adopt(p, k, channel, no, tries, o) })
		if s.fault == adoptedTwice {
			write(func() { n.adopt(p, k, channel, no, tries, o) })
		}
	case Report:
		write(func() { n.report(k.ID, f.Outcome) })
	case Depart:
		if !n.ways.Knows(k.ID) && s.seen["owner lost"] == 0 {
			s.fatalf("a reference to %v leaves, and the owner does not know it", short(k.ID))
		}
		s.of[k].left = true
	case AckUpTo:
		if c := p.to[f.Channel]; c != nil && c.open() {
			c.calls = append(c.calls, Acked{f.Channel, f.No})
		}
	case TellChannel:
		ch, of := f.Channel, f.Instance
		write(func() { n.linked(p, ch, of) })
	case HangUp:
		c := p.to[f.Channel]
		c.shut = true
		delete(p.to, f.Channel)
		write(func() { n.step(HungUp{c.id}) })
	}
}

// nothingIsLeft has the owner forget all calls: then it has no channel but those that are open.
func (s *sim) nothingIsLeft() {
	for _, x := range s.order {
		s.node.step(Freed{x.call.ID})
	}
	w := s.node.ways
	for _, l := range w.channels {
		if l.hungUp || s.node.process(l.client).dead || len(l.calls) > 0 {
			s.fatalf("the owner keeps channel %d of %s: %+v", l.id, s.node.process(l.client).name, l)
		}
	}
	for id, c := range w.clients {
		if len(c.lanes)+len(c.asking) == 0 || len(c.calls) > 0 {
			s.fatalf("the owner keeps %s", s.node.process(id).name)
		}
	}
	if len(w.adopted) > 0 {
		s.fatalf("the owner keeps %d calls", len(w.adopted))
	}
	for of := range w.place(theActor).past {
		if s.node.instances[of-1].buried && len(w.place(theActor).lanesOf(of)) == 0 {
			s.fatalf("the owner keeps instance %v", of)
		}
	}
}

// check holds a call's outcome against what ran.
func (s *sim) check(x *spec, o *Outcome) {
	if o.Err != nil {
		if o.Err.Code == errs.CodeDeadlock {
			s.seen["ended unbegun"]++
			if x.call.tries == 0 && len(s.byCall[x.call.ID]) > 0 {
				s.fatalf("call %v has run, and ends as one that has not begun", short(x.call.ID))
			}
		}
		return
	}
	r, ok := o.Value.(*run)
	if !ok || r.id != x.call.ID {
		s.fatalf("call %v has the outcome of another: %+v", short(x.call.ID), o)
	}
}

func (h *instance) linked(c *pipe) bool {
	return h.core.sources[c.id] != nil || c.ended || len(c.calls) > 0 && h.waits(c)
}

// waits tells whether the host has been told of a channel.
func (h *instance) waits(c *pipe) bool {
	for _, e := range h.fromN {
		if l, ok := e.(Linked); ok && l.Channel == c.id {
			return false
		}
	}
	return true
}

func (h *instance) step(e HostEvent) {
	if q, ok := e.(stillThere); ok {
		h.toNode = append(h.toNode, func() { h.s.node.step(Lives(q)) })
		return
	}
	h.s.logf("  host %v <- %T %s", h.id, e, tell(e))
	if w, ok := e.(Where); ok && h.s.fault == askedTooEarly && h.core.sources[w.Channel] != nil {
		src := h.core.sources[w.Channel]
		was := src.gone
		src.gone = true
		defer func() { src.gone = was }()
	}
	if h.s.rnd.IntN(20) == 0 {
		h.s.seen["host's core lost"]++
		h.core.step(e)
		h.core = NewHost(h.core.cfg, h.core.memory)
	}
	effects := append([]HostEffect(nil), h.core.Step(h.s.now, e)...)
	for in := h.core.memory.first; in != nil; in = in.next {
		if in.kept != in.incoming {
			h.s.fatalf("a step has changed %v and not written it down: %+v, %+v", short(in.ID), in.kept, in.incoming)
		}
	}
	for _, src := range h.core.list {
		if src.aside[0].Len()+src.aside[1].Len() > 0 {
			h.s.seen["stood aside"]++
		}
	}
	for _, f := range effects {
		h.do(f)
		if !h.s.quiet && h.s.rnd.IntN(1000) == 0 {
			h.die("between two effects")
		}
		if h.gone {
			return
		}
	}
}

// die ends the actor's process.
func (h *instance) die(when string) {
	h.s.logf("the process of instance %v dies %s", h.id, when)
	h.s.seen["actor's process dies"]++
	h.gone = true
	for _, c := range h.s.node.channels {
		if c.host == h {
			c.calls = nil
		}
	}
}

func (h *instance) do(f HostEffect) {
	s, n := h.s, h.s.node
	c := n.pipes[f.Channel]
	write := func(g func()) { h.toNode = append(h.toNode, g) }
	switch f.Do {
	case Run:
		if c != nil {
			c.page[f.Call.Group] = f.No
		}
		if !s.quiet && s.rnd.IntN(1000) == 0 {
			h.die("before a call has begun that is counted")
			return
		}
		s.begins(h, f.Call)
		h.running = append(h.running, f.Call)
	case Interrupt:
	case Answer:
		if f.Channel == ownersChannel {
			id, said, o := f.Call.ID, f.Said, f.Outcome
			write(func() { n.done(h, id, said, o) })
			h.fromN = append(h.fromN, Acked{ownersChannel, f.AckNo})
			return
		}
		if c != nil && !c.from.dead && !c.shut && !c.cut {
			c.answers = append(c.answers, &Answered{f.Channel, f.No, f.AckNo, f.Said, f.Outcome, false})
		}
	case SayLast:
		if c != nil {
			c.last = true
		}
	case TellOwner:
		ch, no, said, o := f.Channel, f.No, f.Said, f.Outcome
		write(func() { n.hostSaid(h, ch, no, said, o) })
	case NotHere:
		ch, no := f.Channel, f.No
		write(func() { n.notHere(ch, no) })
	case Fallen:
		write(func() { n.instanceGone(h) })
	}
}

// begins notes an execution, and holds it against what was promised.
func (s *sim) begins(h *instance, in *Incoming) {
	x := s.specs[in.ID]
	r := &run{in.ID, h.id, len(s.byCall[in.ID]) + 1}
	s.logf("    instance %v runs %v", h.id, short(in.ID))
	if r.n > 1+int(x.call.Retries) {
		s.fatalf("call %v runs %d times, it has %d retries", short(in.ID), r.n, x.call.Retries)
	}
	for _, o := range s.ran {
		y := s.specs[o.id]
		if o.instance == h.id && y.call.Caller == x.call.Caller && y.call.Group == x.call.Group && y.seq > x.seq && (!s.wasCut() || r.n == 1 && o.n == 1) {
			s.fatalf("call %v, the %d. of its caller, runs after the %d.", short(in.ID), x.seq, y.seq)
		}
	}
	if r.n > 1 {
		s.seen["made again"]++
	}
	s.ran = append(s.ran, r)
	s.byCall[in.ID] = append(s.byCall[in.ID], r)
	in.Payload = r
}

// wasCut tells whether a channel was cut: then calls may run again in the instance that ran them.
func (s *sim) wasCut() bool {
	return slices.ContainsFunc(s.node.channels, func(c *pipe) bool { return c.cut })
}

func (h *instance) finish(i int, in *Incoming) {
	h.running = append(h.running[:i:i], h.running[i+1:]...)
	r := in.Payload.(*run)
	e := &Finished{Call: in, Outcome: &Outcome{Value: r, Bytes: int64(h.s.rnd.IntN(20))}, Bytes: int64(h.s.rnd.IntN(50))}
	if !h.s.quiet && h.s.rnd.IntN(40) == 0 {
		h.s.seen["panic"]++
		e.Panicked, e.Outcome = true, &Outcome{Err: errs.New(errs.CodePanic, "call %v panicked", short(in.ID))}
	}
	h.step(e)
}

func seeds() int {
	if os.Getenv("MOBULA_STRESS") != "" {
		return 10_000
	}
	return 1000
}

// Processes call an actor both ways, let references go, cancel, and die between any two effects, as does the actor's process; channels are cut, the actor panics, and
// tasks run again. Each call of a process that lives has one end, and it is its own; calls of one caller begin in order; none runs more often than it has retries; and
// a reference that has left its process resolves, whoever dies.
func TestCallsGoStraight(t *testing.T) {
	seen := make(map[string]int)
	for _, seed := range testkit.Seeds(t, seeds()) {
		s, err := simulate(seed, "")
		if err != "" {
			t.Fatalf("seed %d: %s\n%s", seed, err, strings.Join(s.log, "\n"))
		}
		for what, n := range s.seen {
			seen[what] += n
		}
	}
	t.Logf("%v", seen)
	for _, what := range []string{"process dies", "actor's process dies", "panic", "cut", "adopted", "adopted and told by the host", "adopted and never sent", "made again", "stood aside", "core lost", "host's core lost", "by the owner", "its task ran again", "owner lost", "cancelled by another", "cancelled at the host", "ended unbegun"} {
		if seen[what] == 0 {
			t.Errorf("no seed has seen this: %s", what)
		}
	}
}

// Mutants are faults that are planted in what the cores ask for, or are told.
const (
	numberTwice   mutant = "a number is used twice"
	ackEarly      mutant = "an answer is acknowledged before the owner is told"
	adoptedTwice  mutant = "a result is given to the owner twice"
	againUnasked  mutant = "a call is made again without the node's word"
	oldAnswer     mutant = "an answer on an old channel is taken for one on the new"
	orderLost     mutant = "the way changes while calls are under way"
	childTwice    mutant = "a call of a task that may run again goes straight"
	askedTooEarly mutant = "the owner is told that a call never came, before the channel was read to its end"
)

func TestMutantsAreFound(t *testing.T) {
	for _, fault := range []mutant{numberTwice, ackEarly, adoptedTwice, againUnasked, oldAnswer, orderLost, childTwice, askedTooEarly} {
		t.Run(string(fault), func(t *testing.T) {
			for _, seed := range testkit.Seeds(t, 10_000) {
				if _, err := simulate(seed, fault); err != "" {
					t.Logf("seed %d: %s", seed, err)
					return
				}
			}
			t.Error("nobody has noticed it")
		})
	}
}

func simulate(seed uint64, fault mutant) (s *sim, err failure) {
	s = newSim(seed, fault)
	defer func() {
		switch v := recover().(type) {
		case nil:
		case failure:
			err = v
		default:
			panic(v)
		}
	}()
	for range 400 {
		if s.rnd.IntN(4) == 0 {
			s.disturb()
		} else {
			s.act()
		}
	}
	s.end()
	return s, ""
}

// end lets everything come to its end: nobody waits for ever.
func (s *sim) end() {
	s.quiet = true
	for _, p := range s.procs {
		for _, x := range p.mine {
			if !p.dead && x.call.missing > 0 {
				p.step(Argument{Call: x.call})
			}
		}
	}
	for n := 0; s.act(); n++ {
		if n > 100000 {
			s.fatalf("it goes on for ever")
		}
	}
	for _, p := range s.procs {
		for _, x := range p.mine {
			if x.settled == nil && !p.dead {
				s.fatalf("call %v of %s has no end", short(x.call.ID), p.name)
			}
		}
	}
	for _, x := range s.order {
		o := s.node.outcomes[x.call.ID]
		switch {
		case s.node.ways.Knows(x.call.ID) && o == nil:
			s.fatalf("call %v was adopted and has no end: %+v", short(x.call.ID), s.node.ways.adopted[x.call.ID])
		case o != nil && o.Err == nil:
			s.check(x, o)
		}
		if o != nil && x.settled != nil && o != x.settled && !x.by.dead && (o.Err == nil || x.settled.Err == nil) {
			s.fatalf("call %v has come to %+v for its caller, and to %+v for others", short(x.call.ID), x.settled, o)
		}
	}
	s.nothingIsLeft()
	for _, p := range s.procs {
		if p.dead {
			continue
		}
		if p.core.Held() > budget {
			s.fatalf("%s keeps %d bytes of results", p.name, p.core.Held())
		}
		if len(p.core.lines) > 0 {
			s.fatalf("%s keeps %d lines", p.name, len(p.core.lines))
		}
		for _, c := range p.core.channels {
			if c.over {
				s.fatalf("%s keeps channel %d", p.name, c.id)
			}
		}
	}
}
