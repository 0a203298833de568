package world

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"mobula/internal/ids"
)

// line is a connection between two nodes, for messages or for objects.
type line struct {
	w    *World
	ends [2]*end
}

// end is a node's end of a line.
type end struct {
	line   *line
	n      *Node
	in     *box // what arrives
	open   bool
	take   func(ev any)
	hungUp func(err error) // is called once, unless this end was closed by its own node
}

// hangup is what arrives last, where a line has ended.
type hangup struct{ err error }

var (
	errBroke       = errors.New("the connection broke")
	errUnreachable = errors.New("the node is not reached")
	errRefused     = errors.New("nobody listens there")
)

// connect makes a line. Who is at the ends says what is done with what arrives.
func (w *World) connect(a, b *Node, what string) (*end, *end) {
	l := &line{w: w}
	for i, n := range []*Node{a, b} {
		e := &end{line: l, n: n, open: true}
		e.in = n.box(fmt.Sprint(what, " of node ", []*Node{a, b}[1-i].home), e.arrive)
		l.ends[i] = e
	}
	w.lines = append(w.lines, l)
	return l.ends[0], l.ends[1]
}

func (e *end) other() *end {
	if e == e.line.ends[0] {
		return e.line.ends[1]
	}
	return e.line.ends[0]
}

func (e *end) arrive(ev any) {
	h, over := ev.(hangup)
	if !over {
		e.take(ev)
		return
	}
	e.shut()
	e.hungUp(h.err)
}

// write sends something to the other end.
func (e *end) write(ev any) {
	if !e.open {
		return
	}
	w, o := e.line.w, e.other()
	if w.slow[pairOf(e.n, o.n)] > w.now {
		o.in.hold(w.between(time.Millisecond, 50*time.Millisecond))
	}
	o.in.put(ev)
}

// close ends the line. What was written before still arrives.
func (e *end) close() {
	if e.open {
		e.shut()
		e.other().in.put(hangup{errBroke})
	}
}

// shut ends this end of it.
func (e *end) shut() {
	e.open = false
	e.in.close()
	if !e.other().open {
		e.line.w.lines = slices.DeleteFunc(e.line.w.lines, func(l *line) bool { return l == e.line })
	}
}

// breakOff ends a line between two nodes that live: of what is under way some arrives.
func (l *line) breakOff() {
	for _, e := range l.ends {
		if e.open {
			e.in.cutOff(l.w.rng.IntN(e.in.len() + 1))
			e.in.put(hangup{errBroke})
		}
	}
}

// linesOf are the lines between two nodes.
func (w *World) linesOf(a, b *Node) (out []*line) {
	for _, l := range w.lines {
		if x, y := l.ends[0].n, l.ends[1].n; x == a && y == b || x == b && y == a {
			out = append(out, l)
		}
	}
	return out
}

// hangUpAll ends all lines of a node whose process is gone. Its machine says so, unless that is gone too.
func (n *Node) hangUpAll(word bool) {
	for _, l := range slices.Clone(n.w.lines) {
		for _, e := range l.ends {
			if e.n != n || !e.open {
				continue
			}
			o := e.other()
			e.shut()
			if word && o.open {
				o.in.cutOff(n.w.rng.IntN(o.in.len() + 1))
				o.in.put(hangup{errBroke})
			}
		}
	}
}

// nodePair names two nodes, the lower home first.
type nodePair struct{ a, b ids.Home }

func pairOf(a, b *Node) nodePair { return nodePair{min(a.home, b.home), max(a.home, b.home)} }

// reaches tells whether what a node sends gets to another one.
func (w *World) reaches(a, b *Node) bool {
	return w.cuts[pairOf(a, b)] <= w.now && a.lone <= w.now && b.lone <= w.now
}

// cut has nothing pass between two nodes for some time. Some of the lines between them break, and what is sent on the others comes later.
func (w *World) cut(a, b *Node, d int64) {
	w.cuts[pairOf(a, b)] = max(w.cuts[pairOf(a, b)], w.now+d)
	for _, l := range w.linesOf(a, b) {
		if w.rng.IntN(2) == 0 {
			l.breakOff()
			continue
		}
		for _, e := range l.ends {
			e.in.hold(d)
		}
	}
}
