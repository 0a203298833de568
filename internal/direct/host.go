package direct

import (
	"slices"

	"mobula/internal/errs"
	"mobula/internal/queue"
)

// HostConfig says what a Host is for.
type HostConfig struct {
	Groups  []int // how many calls of each concurrency group run at once
	Pending int   // MaxPendingCalls; 0: without bound
	Unread  int64 // bytes of answers that a channel may leave unacknowledged: beyond it its calls stand aside
}

// Host is the core of one instance of an actor.
type Host struct {
	cfg      HostConfig
	memory   *HostMemory
	order    uint64    // of the last call
	channels int       // that there were
	boxes    []mailbox // one a group
	sources  map[Channel]*source
	list     []*source // the same, in a fixed order
	last     *source   // that something came on; nil: none
	pending  int
	stopping bool // it takes no more calls
	fallen   bool // nothing runs any more
	effects  []HostEffect

	touchedCalls   []*Incoming // in the step under way
	touchedSources []*source
}

// mailbox is the calls of one concurrency group.
type mailbox struct {
	most    int
	waiting queue.Queue[*Incoming]
	running []*Incoming
}

// source is one channel, from the other end.
type source struct {
	id     Channel
	aside  []queue.Queue[*Incoming] // of each group: they wait until answers are taken
	kept   queue.Queue[*Incoming]   // whose answers are not acknowledged, from acked+1 on
	unread int64
	sourceFacts
	came    []uint64    // calls of each group
	asked   []uint64    // by the owner, of calls
	facts   *keptSource // after the last step that has ended; nil: it is new
	touched bool
	over    bool // it is forgotten
}

// sourceFacts is what does not follow from the calls. It has no pointers, since it is copied at each step.
type sourceFacts struct {
	at      int    // in the order of channels
	taken   uint64 // calls, up to this number
	acked   uint64
	answers uint64 // up to this number
	gone    bool   // its other end, and it was read to the end
	dropped bool   // the owner asks for nothing of it
}

// Step takes an event. The effects are valid until the next step. If it panics, a new core is made of the memory, as if it had not begun.
func (h *Host) Step(_ int64, ev HostEvent) []HostEffect {
	h.step(ev)
	h.commit()
	return h.effects
}

func (h *Host) step(ev HostEvent) {
	h.effects = h.effects[:0]
	switch e := ev.(type) {
	case Linked:
		h.channels++
		s := h.touchSource(h.newSource(e.Channel, sourceFacts{at: h.channels}))
		s.came = make([]uint64, len(h.boxes))
		if h.fallen {
			h.do(HostEffect{Do: SayLast, Channel: s.id})
		}
	case *Arrived:
		if s := h.source(e.Channel); s != nil {
			h.arrived(s, e.Call)
		}
	case Unwanted:
		if s := h.source(e.Channel); s != nil {
			h.unwanted(s, e)
		}
	case Overdue:
		h.leaveBehind(e.Call)
	case *Finished:
		h.finished(e)
	case Acked:
		if s := h.source(e.Channel); s != nil {
			h.acked(s, e.UpTo)
		}
	case Unlinked:
		if s := h.source(e.Channel); s != nil {
			h.unlinked(s)
		}
	case Stopping:
		h.stop(e.Drain)
	case Where:
		h.where(e)
	case Dropped:
		if s := h.source(e.Channel); s != nil {
			h.touchSource(s).dropped = true
			h.maybeForget(s)
		}
	}
	if h.stopping && h.pending == 0 {
		h.giveUp()
	}
}

// source finds a channel; nil: it has ended, and nobody asks for it.
func (h *Host) source(id Channel) *source {
	if h.last == nil || h.last.id != id {
		h.last = h.sources[id]
	}
	return h.last
}

func (h *Host) do(e HostEffect) { h.effects = append(h.effects, e) }

func (h *Host) arrived(s *source, in *Incoming) {
	h.order++
	h.touchSource(s).taken++
	in.from, in.touched, in.outcome = s, false, nil
	in.order, in.no, in.nth = h.order, s.taken, 0
	h.touch(in).incoming = incoming{}
	if in.Group < len(h.boxes) {
		s.came[in.Group]++
		in.nth = s.came[in.Group]
	}
	switch {
	case h.stopping || h.fallen:
		h.say(in, SaidWaits, nil)
		return
	case in.Group >= len(h.boxes):
		h.answer(in, &Outcome{Err: errs.New(errs.CodeInvalid, "the actor has no concurrency group of number %d: name it when the actor is created", in.Group)}, 0, false)
		return
	case h.cfg.Pending > 0 && h.pending >= h.cfg.Pending:
		h.answer(in, &Outcome{Err: tooMany(h.cfg.Pending)}, 0, false)
		return
	}
	h.pending++
	h.boxes[in.Group].waiting.Push(in)
	h.begin(in.Group)
}

// begin runs what is next in a mailbox, while it may. Calls of a channel that does not take its answers stand aside for the others.
func (h *Host) begin(group int) {
	b := &h.boxes[group]
	for !h.fallen && len(b.running) < b.most && b.waiting.Len() > 0 {
		in := b.waiting.Pop()
		s := in.from
		if h.full(s) || s.aside[group].Len() > 0 {
			h.touch(in).aside = true
			s.aside[group].Push(in)
			continue
		}
		h.touch(in).running = true
		b.running = append(b.running, in)
		h.do(HostEffect{Do: Run, Call: in, Channel: s.id, No: in.nth})
	}
}

func (h *Host) full(s *source) bool { return !s.gone && s.unread > h.cfg.Unread }

func (h *Host) finished(e *Finished) {
	in := e.Call
	if in.over { // it was given up, or left behind
		if e.Panicked && !h.fallen {
			h.do(HostEffect{Do: Fallen, Call: in, Outcome: e.Outcome})
			h.giveUp()
		}
		return
	}
	h.leave(in)
	if e.Panicked {
		h.fall(in, e.Outcome)
		return
	}
	h.answer(in, e.Outcome, e.Bytes, e.Holds)
	h.begin(in.Group)
}

// leave takes a call off those that are pending.
func (h *Host) leave(in *Incoming) {
	h.pending--
	b := &h.boxes[in.Group]
	gone := func(x *Incoming) bool { return x == in }
	if in.running {
		b.running = slices.DeleteFunc(b.running, gone)
		return
	}
	b.waiting.DeleteFunc(gone)
	in.from.aside[in.Group].DeleteFunc(gone)
}

// answer ends a call.
func (h *Host) answer(in *Incoming, o *Outcome, bytes int64, holds bool) {
	h.touch(in).outcome, in.bytes = o, bytes
	h.end(in, holds)
}

// say ends a call that the end of the instance has left behind.
func (h *Host) say(in *Incoming, said Said, o *Outcome) {
	h.touch(in).said, in.outcome = said, o
	h.end(in, false)
}

// end keeps an answer until whoever called has it, and has done what follows from it.
func (h *Host) end(in *Incoming, holds bool) {
	s := h.touchSource(in.from)
	s.answers++
	in.over, in.running, in.aside, in.ackNo = true, false, false, s.answers
	s.kept.Push(in)
	s.unread += in.bytes
	if in.tell {
		h.tell(in)
	}
	h.do(HostEffect{Do: Answer, Channel: s.id, Call: in, No: in.no, AckNo: in.ackNo, Said: in.said, Outcome: in.outcome, Holds: holds})
}

func (h *Host) tell(in *Incoming) {
	h.do(HostEffect{Do: TellOwner, Channel: in.from.id, No: in.no, Said: in.said, Outcome: in.outcome})
}

func (h *Host) unwanted(s *source, e Unwanted) {
	switch in := h.find(s, e.No); {
	case in == nil:
	case in.running && e.Unbegun != nil:
	case in.running:
		h.do(HostEffect{Do: Interrupt, Call: in, Wish: e.Wish})
		if e.Wish.Force {
			h.leaveBehind(in)
		}
	case e.Unbegun != nil:
		h.leave(in)
		h.answer(in, e.Unbegun, 0, false)
	default:
		h.leave(in)
		h.answerCancelled(in)
	}
}

func (h *Host) answerCancelled(in *Incoming) {
	h.answer(in, &Outcome{Err: cancelled(in.ID)}, 0, false)
}

// leaveBehind answers a call that runs, and goes on without waiting for it.
func (h *Host) leaveBehind(in *Incoming) {
	if in.running {
		h.leave(in)
		h.answerCancelled(in)
		h.begin(in.Group)
	}
}

func (h *Host) acked(s *source, upTo uint64) {
	was := h.full(s)
	for s.acked < upTo && s.kept.Len() > 0 {
		in := h.touch(s.kept.Pop()) // it leaves the memory
		s.unread -= in.bytes
		h.touchSource(s).acked++
	}
	if was && !h.full(s) {
		h.goOn(s)
	}
	h.maybeForget(s)
}

// goOn puts the calls of a channel that stood aside back into their mailboxes: before those that came after them.
func (h *Host) goOn(s *source) {
	for g := range s.aside {
		back := s.aside[g].All()
		for i := len(back) - 1; i >= 0; i-- {
			h.touch(back[i]).aside = false
			h.boxes[g].waiting.PushFront(back[i])
		}
		s.aside[g] = queue.Queue[*Incoming]{}
		h.begin(g)
	}
}

// unlinked lets the calls of a process that is gone run on: they were made. Their answers are kept for the owner, which may have adopted them.
func (h *Host) unlinked(s *source) {
	h.touchSource(s).gone = true
	h.goOn(s)
	h.lookFor(s)
	h.maybeForget(s)
}

func (h *Host) stop(drain bool) {
	if h.stopping && drain {
		return
	}
	h.stopping = true
	if !drain {
		h.giveUp()
	}
}

// fall ends the instance, which a call has brought down.
func (h *Host) fall(culprit *Incoming, o *Outcome) {
	h.do(HostEffect{Do: Fallen, Call: culprit, Outcome: o})
	h.say(culprit, SaidCulprit, o)
	h.giveUp()
}

// giveUp says of every call how far it has come, and that nothing follows.
func (h *Host) giveUp() {
	if h.fallen {
		return
	}
	h.stopping, h.fallen = true, true
	for i := range h.boxes {
		b := &h.boxes[i]
		for _, in := range b.running {
			h.say(in, SaidBegun, nil)
			h.do(HostEffect{Do: Interrupt, Call: in})
		}
		for b.waiting.Len() > 0 {
			h.say(b.waiting.Pop(), SaidWaits, nil)
		}
		b.running = nil
	}
	for _, s := range h.list {
		for g := range s.aside {
			for s.aside[g].Len() > 0 {
				h.say(s.aside[g].Pop(), SaidWaits, nil)
			}
		}
	}
	h.pending = 0
	for _, s := range slices.Clone(h.list) {
		h.do(HostEffect{Do: SayLast, Channel: s.id})
		h.maybeForget(s)
	}
}

// where tells the owner of calls whose caller is gone: what each has come to, now or when it has; or that it never came.
func (h *Host) where(e Where) {
	s := h.source(e.Channel)
	if s == nil { // nobody can say any more how far they have come
		for _, no := range e.Numbers {
			h.do(HostEffect{Do: TellOwner, Channel: e.Channel, No: no, Said: SaidBegun})
		}
		return
	}
	h.touchSource(s).asked = slices.Concat(s.asked, e.Numbers)
	if s.gone {
		h.lookFor(s)
	}
}

func (h *Host) lookFor(s *source) {
	for _, no := range s.asked {
		if no > s.taken {
			h.do(HostEffect{Do: NotHere, Channel: s.id, No: no})
		} else if in := h.find(s, no); in != nil {
			h.touch(in).tell = true
		} else if i := slices.IndexFunc(s.kept.All(), func(in *Incoming) bool { return in.no == no }); i >= 0 {
			h.tell(s.kept.All()[i])
		} // else its caller had the answer, and told the owner before it said so
	}
	h.touchSource(s).asked = nil
}

// find finds a call of a channel that is pending.
func (h *Host) find(s *source, no uint64) *Incoming {
	for i := range h.boxes {
		for _, in := range slices.Concat(h.boxes[i].running, h.boxes[i].waiting.All(), s.aside[i].All()) {
			if in.from == s && in.no == no {
				return in
			}
		}
	}
	return nil
}

// maybeForget drops a channel that has ended and of which nobody wants to know anything.
func (h *Host) maybeForget(s *source) {
	if s.gone && (s.dropped || h.fallen && s.kept.Len() == 0) {
		h.forget(s.id)
	}
}

func (h *Host) forget(c Channel) {
	if s := h.sources[c]; s != nil {
		delete(h.sources, c)
		h.last, s.over = nil, true
		h.touchSource(s)
		for _, in := range s.kept.All() {
			h.touch(in)
		}
		h.list = slices.DeleteFunc(h.list, func(x *source) bool { return x == s })
	}
}
