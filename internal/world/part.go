package world

import (
	"slices"
	"time"

	"mobula/internal/errs"
)

// core is the logic of a component.
type core[E, F any] interface {
	Step(now int64, ev E) []F
}

// part is a component of a node: a core, its mailbox, and what carries out its effects. A core that is lost is followed by another after a while, which has
// the event in hand once more, as in package actors; an event that has brought down two is dropped.
type part[E, F any] struct {
	n        *Node
	kind     kind
	box      *box
	build    func(restart int) (core[E, F], []E) // and what it steps first
	do       func(F)
	poisoned func(ev E)      // answers an event that is dropped; nil: nobody waits for an answer
	vital    func(ev E) bool // tells of an event that is not dropped; nil: none is
	check    func() error    // what the core says of itself; nil: nothing

	life     uint64 // of the node
	core     core[E, F]
	hand     E   // that was taken out of the mailbox last
	first    []E // that the core steps first, from the one that it steps on
	restarts int
	lost     []int64 // when cores were, the last while
	next     func()  // builds the next core, once its time has come; nil: there is one
	gone     bool
}

// ofCore is a timer's event: it is for the core that asked for it.
type ofCore struct {
	restart int
	ev      any
}

func startPart[E, F any](n *Node, k kind, name string, p *part[E, F]) *part[E, F] {
	p.n, p.kind, p.life = n, k, n.life
	p.box = n.box(name, p.take)
	p.begin()
	return p
}

// begin builds a core and steps what it is to step first. A fault that is due may throw this one away too: then another follows.
func (p *part[E, F]) begin() {
	for {
		c, first := p.build(p.restarts)
		p.core = c
		if !p.stepFirst(first) {
			return
		}
		p.restarts++
	}
}

// stepFirst tells whether the core was thrown away meanwhile.
func (p *part[E, F]) stepFirst(first []E) bool {
	for i, ev := range first {
		var b *blow
		if p.restarts > 0 {
			b = p.n.w.plan.strikeAgain(p.kind)
		}
		p.first = first[i:]
		if struck := p.run(ev, b); struck || p.ended() {
			return struck
		}
	}
	p.first = nil
	return false
}

func (p *part[E, F]) take(ev any) {
	if p.goOn(); p.ended() {
		return
	}
	if o, ok := ev.(ofCore); ok {
		if o.restart != p.restarts {
			return
		}
		ev = o.ev
	}
	p.step(ev.(E))
}

// step has the core step, and carries out the effects one by one. A fault that is due may come before the step, or between any two effects: then another core
// follows, which has the event once more. An event that is to bring down that one too is dropped then, unless it is vital.
func (p *part[E, F]) step(ev E) {
	p.hand = ev
	b := p.n.w.plan.strike(p.n, p.kind, ev)
	if !p.run(ev, b) {
		return
	}
	p.follow(func() {
		if p.n.w.plan.second = nil; !b.poisons {
			p.run(ev, nil)
			return
		}
		if !p.run(ev, &blow{}) {
			return
		}
		if p.vital != nil && p.vital(ev) {
			p.follow(func() { p.run(ev, nil) })
			return
		}
		if p.poisoned != nil {
			p.poisoned(ev)
		}
		if !p.ended() {
			p.follow(func() {})
		}
	})
}

// errPoisoned is the panic for which an event is dropped.
var errPoisoned = errs.New(errs.CodeComponentFailed, "two cores panicked")

// The backoff before a core is built anew, which doubles with each that was lost lately: package actors' own.
const (
	backoff    = time.Millisecond
	maxBackoff = time.Second
	lately     = int64(10 * time.Second)
)

// follow has another core follow one that was lost, and then do what is given. What comes meanwhile waits.
func (p *part[E, F]) follow(then func()) {
	w := p.n.w
	p.restarts++
	p.lost = append(slices.DeleteFunc(p.lost, func(at int64) bool { return w.now-at >= lately }), w.now)
	d := min(backoff<<min(len(p.lost)-1, 10), maxBackoff)
	p.next = func() {
		if p.begin(); !p.ended() {
			then()
		}
	}
	p.box.hold(int64(d))
	w.after(int64(d), p.goOn)
}

// goOn has the next core follow, if one is to: its time has come, or somebody waits for the answer to an event.
func (p *part[E, F]) goOn() {
	for p.next != nil && !p.ended() {
		next := p.next
		p.next = nil
		next()
	}
}

// rests tells whether a core was lost, and the next one is not there yet.
func (p *part[E, F]) rests() bool { return p.next != nil }

// ended tells whether the node has ended meanwhile, or what this was of it.
func (p *part[E, F]) ended() bool { return p.n.life != p.life || p.gone }

// run has the core step, and carries out the effects until a fault strikes, if one is due. It tells whether the core was thrown away.
func (p *part[E, F]) run(ev E, b *blow) bool {
	w := p.n.w
	if b != nil && p.kind != kindOwner && w.rng.IntN(4) == 0 { // it comes to nothing; an owner's core keeps back first what it is to step later
		b.fall()
		return !p.ended()
	}
	effects := p.core.Step(w.now, ev)
	if p.check != nil && w.steps%checkEvery == 0 {
		if err := p.check(); err != nil {
			w.fail("%s of node %v, after %T: %v", p.kind, p.n.home, ev, err)
		}
	}
	cut := -1
	if b != nil {
		cut = w.rng.IntN(len(effects) + 1)
	}
	for i, f := range effects {
		if i == cut {
			break
		}
		w.log.effect(f)
		if p.do(f); p.ended() {
			return false
		}
	}
	if b == nil {
		return false
	}
	b.fall()
	return !p.ended()
}

// checkEvery is how many events lie between two recounts of the cores.
const checkEvery = 16

// after has the core step on an event when the time has passed, if it is still there.
func (p *part[E, F]) after(d time.Duration, ev any) *timer {
	o := ofCore{p.restarts, ev}
	return p.n.w.after(int64(d), func() { p.box.put(o) })
}

// stop ends the component; nothing of it is left.
func (p *part[E, F]) stop() {
	p.gone = true
	p.box.close()
}
