package world

import (
	"cmp"
	"slices"
)

// box is a mailbox, or one direction of a connection. Its events are taken in the order of their arrival.
type box struct {
	w      *World
	name   string
	order  int // among those that are ready; by creation
	take   func(ev any)
	queue  []any
	head   int
	mixed  bool  // in any order
	held   bool  // nothing is taken
	until  int64 // while it is held
	closed bool
}

// newBox makes a box. The name is the same in each run of a seed.
func (w *World) newBox(name string, take func(ev any)) *box {
	w.boxes++
	return &box{w: w, name: name, order: w.boxes, take: take}
}

func (b *box) len() int { return len(b.queue) - b.head }

// put adds an event. Now and then the box is slow to wake.
func (b *box) put(ev any) {
	if b.closed {
		return
	}
	if t := b.w.cfg.Tamper; t != nil {
		for _, ev := range t(b.w, b.name, ev) {
			b.add(ev)
		}
		return
	}
	b.add(ev)
}

func (b *box) add(ev any) {
	b.queue = append(b.queue, ev)
	if b.len() > 1 || b.held {
		return
	}
	if b.w.rng.IntN(32) == 0 {
		b.hold(1 + b.w.rng.Int64N(int64(slowest)))
		return
	}
	b.w.wake(b)
}

// hold has nothing taken for some time.
func (b *box) hold(d int64) {
	if b.closed || b.w.now+d <= b.until {
		return
	}
	b.until = b.w.now + d
	if !b.held {
		b.held = true
		b.w.sleep(b)
		b.goOn()
	}
}

// goOn lets a box that is held go on when its time has come.
func (b *box) goOn() {
	b.w.after(b.until-b.w.now, func() {
		if b.until > b.w.now {
			b.goOn() // it was held for longer meanwhile
			return
		}
		if b.held = false; b.len() > 0 {
			b.w.wake(b)
		}
	})
}

// next takes an event out.
func (b *box) next() any {
	if b.mixed {
		i := b.head + b.w.rng.IntN(b.len())
		b.queue[b.head], b.queue[i] = b.queue[i], b.queue[b.head]
	}
	ev := b.queue[b.head]
	b.queue[b.head] = nil
	b.head++
	if b.len() == 0 {
		b.queue, b.head = b.queue[:0], 0
		b.w.sleep(b)
	}
	return ev
}

// takeIf takes out the events that are of a kind.
func (b *box) takeIf(of func(ev any) bool) (out []any) {
	var rest []any
	for _, ev := range b.queue[b.head:] {
		if of(ev) {
			out = append(out, ev)
		} else {
			rest = append(rest, ev)
		}
	}
	if b.queue, b.head = rest, 0; len(rest) == 0 {
		b.w.sleep(b)
	}
	return out
}

// cutOff drops all events but the first n.
func (b *box) cutOff(n int) {
	clear(b.queue[b.head+n:])
	b.queue = b.queue[:b.head+n]
	if b.len() == 0 {
		b.w.sleep(b)
	}
}

// close drops all that nobody has taken, and what comes.
func (b *box) close() {
	b.w.sleep(b)
	b.queue, b.head, b.closed = nil, 0, true
}

func (w *World) wake(b *box) {
	if b.closed {
		return
	}
	if i, ready := w.readyAt(b); !ready {
		w.ready = slices.Insert(w.ready, i, b)
	}
}

func (w *World) sleep(b *box) {
	if i, ready := w.readyAt(b); ready {
		w.ready = slices.Delete(w.ready, i, i+1)
	}
}

func (w *World) readyAt(b *box) (int, bool) {
	return slices.BinarySearchFunc(w.ready, b, func(a, b *box) int { return cmp.Compare(a.order, b.order) })
}
