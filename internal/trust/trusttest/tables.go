package trusttest

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"

	"mobula/internal/trust/authority"
)

// Tables implements authority.Tables in this process.
type Tables struct {
	// Fault is asked before and after each write; nil: all succeed. An error before means that nothing was written, one after that the row was
	// written and the answer was lost.
	Fault func(key string, written bool) error

	mu       sync.Mutex
	revision uint64         // guarded by mu
	rows     map[string]row // guarded by mu
}

type row struct {
	data     []byte
	revision uint64
}

// NewTables makes empty tables.
func NewTables() *Tables { return &Tables{rows: make(map[string]row)} }

// Read implements authority.Tables.
func (t *Tables) Read(_ context.Context, key string) ([]byte, uint64, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	r := t.rows[key]
	return slices.Clone(r.data), r.revision, nil
}

// Write implements authority.Tables.
func (t *Tables) Write(_ context.Context, key string, data []byte, revision uint64) error {
	return t.change(key, revision, func() {
		t.rows[key] = row{slices.Clone(data), t.revision}
	})
}

// Delete implements authority.Tables.
func (t *Tables) Delete(_ context.Context, key string, revision uint64) error {
	return t.change(key, revision, func() { delete(t.rows, key) })
}

func (t *Tables) change(key string, revision uint64, change func()) error {
	if t.Fault != nil {
		if err := t.Fault(key, false); err != nil {
			return err
		}
	}
	t.mu.Lock()
	if t.rows[key].revision != revision {
		t.mu.Unlock()
		return authority.ErrConflict
	}
	t.revision++
	change()
	t.mu.Unlock()
	if t.Fault != nil {
		return t.Fault(key, true)
	}
	return nil
}

// Keys implements authority.Tables.
func (t *Tables) Keys(_ context.Context, prefix string) ([]string, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	keys := slices.Sorted(maps.Keys(t.rows))
	return slices.DeleteFunc(keys, func(key string) bool { return !strings.HasPrefix(key, prefix) }), nil
}

// Text is all that lies in the tables, as whoever reads them sees it.
func (t *Tables) Text() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	var b strings.Builder
	for _, key := range slices.Sorted(maps.Keys(t.rows)) {
		b.WriteString(key + " " + string(t.rows[key].data) + "\n")
	}
	return b.String()
}
