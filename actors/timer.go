package actors

import "time"

// timer is a pending After, in its mailbox's list.
type timer[E any] struct {
	m          *mailbox[E]
	ev         E
	inc        uint32 // number of the core that armed it; 0: none
	armed      bool   // in the list; guarded by m.mu
	stop       func() bool
	prev, next *timer[E]
}

func (m *mailbox[E]) after(d time.Duration, ev E, inc uint32) (cancel func()) {
	t := &timer[E]{m: m, ev: ev, inc: inc}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return func() {}
	}
	t.armed = true
	t.next = m.timers
	if t.next != nil {
		t.next.prev = t
	}
	m.timers = t
	t.stop = m.n.sys.clock.AfterFunc(max(d, 0), t.fire)
	return t.cancel
}

// unlink removes the timer from the list, and tells whether it was there. m.mu is held.
func (t *timer[E]) unlink() bool {
	if !t.armed {
		return false
	}
	t.armed = false
	if t.prev != nil {
		t.prev.next = t.next
	} else {
		t.m.timers = t.next
	}
	if t.next != nil {
		t.next.prev = t.prev
	}
	t.prev, t.next = nil, nil
	return true
}

func (t *timer[E]) fire() {
	t.m.mu.Lock()
	armed := t.unlink()
	t.m.mu.Unlock()
	if armed {
		t.m.force(t.ev, t.inc)
	}
}

func (t *timer[E]) cancel() {
	t.m.mu.Lock()
	armed := t.unlink()
	t.m.mu.Unlock()
	if armed {
		t.stop()
	}
}

// cancelTimers cancels every timer, or with inc only those that this core armed.
func (m *mailbox[E]) cancelTimers(inc uint32) {
	m.mu.Lock()
	var cancelled []*timer[E]
	for t := m.timers; t != nil; {
		next := t.next
		if inc == 0 || t.inc == inc {
			t.unlink()
			cancelled = append(cancelled, t)
		}
		t = next
	}
	m.mu.Unlock()
	for _, t := range cancelled {
		t.stop()
	}
}
