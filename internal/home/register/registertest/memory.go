package registertest

import (
	"context"
	"sync"

	"mobula/internal/errs"
	"mobula/internal/home/register"
	"mobula/internal/ids"
)

// Memory is a register in this process. The zero value is empty.
type Memory struct {
	mu   sync.Mutex
	rows map[ids.Home]register.Row // guarded by mu
	next ids.Home                  // guarded by mu
}

// Begin is Register's.
func (m *Memory) Begin(_ context.Context, c register.Claim) (register.Row, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.rows == nil {
		m.rows = make(map[ids.Home]register.Row)
	}
	if c.Last == nil {
		for _, r := range m.rows {
			if r.Life == c.Life && r.Identity == c.Identity {
				return r, nil
			}
		}
		return m.put(register.First(m.next, c)), nil
	}
	r, ok := m.rows[c.Last.Home]
	if !ok { // it was its own control plane, or this one has lost the row
		r = *c.Last
	}
	r, err := r.Next(c)
	if err != nil {
		return r, err
	}
	return m.put(r), nil
}

// Row gives the row of a home.
func (m *Memory) Row(_ context.Context, home ids.Home) (register.Row, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	row, ok := m.rows[home]
	if !ok {
		return row, errs.New(errs.CodeNotFound, "no home %v", home)
	}
	return row, nil
}

// Len is how many homes there are.
func (m *Memory) Len() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.rows)
}

func (m *Memory) put(r register.Row) register.Row {
	m.rows[r.Home] = r
	m.next = max(m.next, r.Home+1)
	return r
}
