package world

import "time"

// core is the logic of a component.
type core[E, F any] interface {
	Step(now int64, ev E) []F
}

// part is a component of a node: a core, its mailbox, and what carries out its effects. A core that is lost is followed by another, which has the
// event in hand once more, as in package actors.
type part[E, F any] struct {
	n     *Node
	kind  kind
	box   *box
	build func(restart int) (core[E, F], []E) // and what it steps first
	do    func(F)
	check func() error // what the core says of itself; nil: nothing

	life     uint64 // of the node
	core     core[E, F]
	hand     E   // that was taken out of the mailbox last
	first    []E // that the core steps first, from the one that it steps on
	restarts int
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
		var strikes func()
		if p.restarts > 0 {
			strikes = p.n.w.plan.strikeAgain(p.kind)
		}
		p.first = first[i:]
		if struck := p.run(ev, strikes); struck || p.ended() {
			return struck
		}
	}
	p.first = nil
	return false
}

func (p *part[E, F]) take(ev any) {
	if o, ok := ev.(ofCore); ok {
		if o.restart != p.restarts {
			return
		}
		ev = o.ev
	}
	p.step(ev.(E))
}

// step has the core step, and carries out the effects one by one. A fault that is due may come between any two of them: then another core follows, which has
// the event once more.
func (p *part[E, F]) step(ev E) {
	p.hand = ev
	if !p.run(ev, p.n.w.plan.strike(p.n, p.kind)) {
		return
	}
	p.restarts++
	p.begin()
	if p.n.w.plan.second = nil; !p.ended() {
		p.run(ev, nil)
	}
}

// ended tells whether the node has ended meanwhile, or what this was of it.
func (p *part[E, F]) ended() bool { return p.n.life != p.life || p.gone }

// run has the core step, and carries out the effects until a fault strikes, if one is due. It tells whether the core was thrown away.
func (p *part[E, F]) run(ev E, strikes func()) bool {
	w := p.n.w
	effects := p.core.Step(w.now, ev)
	if p.check != nil && w.steps%checkEvery == 0 {
		if err := p.check(); err != nil {
			w.fail("%s of node %v, after %T: %v", p.kind, p.n.home, ev, err)
		}
	}
	cut := -1
	if strikes != nil {
		cut = w.rng.IntN(len(effects) + 1)
	}
	for i, f := range effects {
		if i == cut {
			break
		}
		if p.do(f); p.ended() {
			return false
		}
	}
	if strikes == nil {
		return false
	}
	strikes()
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
