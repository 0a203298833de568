package shell

// boxes are the mailboxes whose users have noted something that is to be done when no lock is held any more.
type boxes struct{ first, last *Mailbox }

// up is the mailbox' user, who notes something: HandOver follows when the lock is given back.
func (m *Mailbox) up() HostUp {
	if !m.listed {
		m.listed = true
		m.after.tell.join(boxes{m, m})
	}
	return m.cfg.Up
}

func (b *boxes) join(more boxes) {
	switch {
	case more.first == nil:
		return
	case b.first == nil:
		b.first = more.first
	default:
		b.last.next = more.first
	}
	b.last = more.last
}

// handOver has it done. No lock is held.
func (b boxes) handOver() {
	for m := b.first; m != nil; {
		m.mu.Lock()
		next := m.next
		m.next, m.listed = nil, false // another one may list it again
		m.mu.Unlock()
		m.cfg.Up.HandOver()
		m = next
	}
}
