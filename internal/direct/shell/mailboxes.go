package shell

import (
	"sync"

	"mobula/internal/direct"
)

// Mailboxes finds the mailbox of an instance in this process. The zero value has none.
type Mailboxes struct {
	mu sync.Mutex
	of map[direct.Instance]*Mailbox // guarded by mu
}

// Add has a mailbox found until it is removed.
func (ms *Mailboxes) Add(m *Mailbox) {
	ms.mu.Lock()
	defer ms.mu.Unlock()
	if ms.of == nil {
		ms.of = make(map[direct.Instance]*Mailbox)
	}
	ms.of[m.cfg.Instance] = m
}

// Of is the mailbox of an instance; nil: it has ended, or is in another process.
func (ms *Mailboxes) Of(i direct.Instance) *Mailbox {
	ms.mu.Lock()
	defer ms.mu.Unlock()
	return ms.of[i]
}

// Remove forgets a mailbox. Who has found it before may tell it things still.
func (ms *Mailboxes) Remove(m *Mailbox) {
	ms.mu.Lock()
	defer ms.mu.Unlock()
	if ms.of[m.cfg.Instance] == m {
		delete(ms.of, m.cfg.Instance)
	}
}
