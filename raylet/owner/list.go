package owner

// taskList is an intrusive list: a task is in at most one, a queue of its class, of its
// actor, of its caller, the list of kept lineage or that of large specs whose tasks wait for arguments. A queue of package queue would not do: any task leaves it at once, wherever it is.
type taskList struct {
	head, tail *taskRec
	n          int
	bytes      int64  // of the specs of those in it, as wire.CostOfSpec
	pushed     uint64 // at the back, ever
	looked     uint64 // of pushed, how far paging has looked
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
	l.bytes += t.specCost()
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
	l.bytes += t.specCost()
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
		l.bytes += t.specCost()
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
	l.bytes -= t.specCost()
}
