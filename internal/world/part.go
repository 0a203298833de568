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

	core     core[E, F]
	hand     E // stepped last
	restarts int
	gone     bool
}

// ofCore is a timer's event: it is for the core that asked for it.
type ofCore struct {
	restart int
	ev      any
}

func startPart[E, F any](n *Node, k kind, name string, p *part[E, F]) *part[E, F] {
	p.n, p.kind = n, k
	p.box = n.box(name, p.take)
	p.begin()
	return p
}

// begin builds a core and steps what it is to step first.
func (p *part[E, F]) begin() {
	c, first := p.build(p.restarts)
	p.core = c
	for _, ev := range first {
		p.step(ev, false)
	}
}

func (p *part[E, F]) take(ev any) {
	if o, ok := ev.(ofCore); ok {
		if o.restart != p.restarts {
			return
		}
		ev = o.ev
	}
	p.step(ev.(E), true)
}

// step has the core step, and carries out the effects one by one. A fault that is due may come between any two of them.
func (p *part[E, F]) step(ev E, fragile bool) {
	w, life := p.n.w, p.n.life
	p.hand = ev
	effects := p.core.Step(w.now, ev)
	if p.check != nil && w.steps%checkEvery == 0 {
		if err := p.check(); err != nil {
			w.fail("%s of node %v, after %T: %v", p.kind, p.n.home, ev, err)
		}
	}
	var strikes func()
	cut := -1
	if fragile {
		if strikes = w.plan.strike(p.n, p.kind); strikes != nil {
			cut = w.rng.IntN(len(effects) + 1)
		}
	}
	for i, f := range effects {
		if i == cut {
			break
		}
		if p.do(f); p.n.life != life || p.gone {
			return // the node is gone, or what this was of it
		}
	}
	if strikes == nil {
		return
	}
	if strikes(); p.n.life != life {
		return
	}
	p.restarts++
	p.begin()
	if p.n.life == life && !p.gone {
		p.step(ev, false)
	}
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
