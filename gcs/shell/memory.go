package shell

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"

	"mobula/gcs"
)

// Memory implements Tables in this process, for tests. Its rows outlive a control plane that uses it.
type Memory struct {
	mu       sync.Mutex
	revision uint64                        // guarded by mu
	rows     map[gcs.Bucket]map[string]row // guarded by mu
	watches  relays                        // guarded by mu
}

type row struct {
	record   gcs.Record
	revision uint64
}

// NewMemory makes empty tables.
func NewMemory() *Memory {
	m := &Memory{rows: make(map[gcs.Bucket]map[string]row)}
	for _, b := range shared {
		m.rows[b] = make(map[string]row)
	}
	return m
}

// Watch implements Tables.
func (m *Memory) Watch(life, ready context.Context, changed func(gcs.Changed)) error {
	w := newRelay(life, changed)
	m.mu.Lock()
	var first []gcs.Changed
	for b, rows := range m.rows {
		for key, r := range rows {
			first = append(first, gcs.Changed{Bucket: b, Key: key, Record: r.record, Revision: r.revision})
		}
	}
	m.watches = append(m.watches, w)
	m.mu.Unlock()
	slices.SortFunc(first, func(a, b gcs.Changed) int { return cmp.Compare(a.Revision, b.Revision) })
	w.rows <- first
	return w.await(ready)
}

// Do implements Tables. It does not block.
func (m *Memory) Do(_ context.Context, e gcs.Effect) gcs.Answered {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch e := e.(type) {
	case gcs.Write:
		b, key := e.Record.Bucket(), e.Record.Key()
		if e.Revision >= 0 && m.rows[b][key].revision != uint64(e.Revision) {
			return gcs.Answered{ID: e.ID, Wrote: true, Conflict: true}
		}
		m.revision++
		m.rows[b][key] = row{e.Record, m.revision}
		m.watches.pass(gcs.Changed{Bucket: b, Key: key, Record: e.Record, Revision: m.revision})
		return gcs.Answered{ID: e.ID, Wrote: true, Revision: m.revision}
	case gcs.Delete:
		if e.Revision >= 0 && m.rows[e.Bucket][e.Key].revision != uint64(e.Revision) {
			return gcs.Answered{ID: e.ID, Wrote: true, Conflict: true}
		}
		m.revision++
		delete(m.rows[e.Bucket], e.Key)
		m.watches.pass(gcs.Changed{Bucket: e.Bucket, Key: e.Key, Revision: m.revision})
		return gcs.Answered{ID: e.ID, Wrote: true}
	case gcs.Read:
		r := m.rows[e.Bucket][e.Key]
		return gcs.Answered{ID: e.ID, Record: r.record, Revision: r.revision}
	}
	return gcs.Answered{Err: fmt.Errorf("%T is no call to the tables", e)}
}

// Close implements Tables.
func (m *Memory) Close() {
	m.mu.Lock()
	watches := m.watches
	m.watches = nil
	m.mu.Unlock()
	watches.close()
}
