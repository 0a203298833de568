package owner

import (
	"slices"

	"mobula/internal/ids"
)

// taskList is an intrusive list: a task is in at most one, a queue of its class, of its
// actor, of its caller, or the list of kept lineage.
type taskList struct {
	head, tail *taskRec
	n          int
	pushed     uint64 // at the back, ever
}

func (l *taskList) pushBack(t *taskRec) {
	t.in, t.prev, t.next = l, l.tail, nil
	if l.tail == nil {
		l.head = t
	} else {
		l.tail.next = t
	}
	l.tail = t
	l.n++
	l.pushed++
}

func (l *taskList) pushFront(t *taskRec) {
	t.in, t.prev, t.next = l, nil, l.head
	if l.head == nil {
		l.tail = t
	} else {
		l.head.prev = t
	}
	l.head = t
	l.n++
}

// insertAfter puts t behind p, which is in the list; a nil p means the front.
func (l *taskList) insertAfter(p, t *taskRec) {
	switch p {
	case nil:
		l.pushFront(t)
	case l.tail:
		l.pushBack(t)
	default:
		t.in, t.prev, t.next = l, p, p.next
		p.next.prev = t
		p.next = t
		l.n++
	}
}

// unlist takes t out of the list it is in, if any.
func (t *taskRec) unlist() {
	l := t.in
	if l == nil {
		return
	}
	if t.prev == nil {
		l.head = t.next
	} else {
		t.prev.next = t.next
	}
	if t.next == nil {
		l.tail = t.prev
	} else {
		t.next.prev = t.prev
	}
	t.in, t.prev, t.next = nil, nil, nil
	l.n--
}

// fifo is a queue in a slice that is used again.
type fifo struct {
	q []*taskRec
	h int
}

func (f *fifo) len() int { return len(f.q) - f.h }

func (f *fifo) push(t *taskRec) {
	if f.h > 32 && f.h*2 >= len(f.q) {
		n := copy(f.q, f.q[f.h:])
		clear(f.q[n:])
		f.q, f.h = f.q[:n], 0
	}
	f.q = append(f.q, t)
}

func (f *fifo) all() []*taskRec { return f.q[f.h:] }

func (f *fifo) head() *taskRec {
	if f.h == len(f.q) {
		return nil
	}
	return f.q[f.h]
}

// take removes the task with this id, wherever it is; tasks end nearly in order.
func (f *fifo) take(id ids.TaskID) *taskRec {
	for i := f.h; i < len(f.q); i++ {
		t := f.q[i]
		if t.ret0.id.Task != id {
			continue
		}
		copy(f.q[f.h+1:i+1], f.q[f.h:i])
		f.q[f.h] = nil
		f.h++
		if f.h == len(f.q) {
			f.q, f.h = f.q[:0], 0
		}
		return t
	}
	return nil
}

// contains tells whether any task of the queue is so.
func (f *fifo) contains(so func(*taskRec) bool) bool { return slices.ContainsFunc(f.q[f.h:], so) }

// drain empties the queue and gives what was in it.
func (f *fifo) drain() []*taskRec {
	out := append([]*taskRec(nil), f.q[f.h:]...)
	clear(f.q)
	f.q, f.h = f.q[:0], 0
	return out
}
