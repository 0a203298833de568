package shell

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"

	"mobula/gcs"
	"mobula/internal/inbox"
)

// Memory implements Tables in this process, for tests. Its rows outlive a control plane that uses it.
type Memory struct {
	mu       sync.Mutex
	revision uint64                        // guarded by mu
	rows     map[gcs.Bucket]map[string]row // guarded by mu
	watches  []*memoryWatch                // guarded by mu
}

type row struct {
	record   gcs.Record
	revision uint64
}

// memoryWatch tells a watcher the changes of all tables, in order.
type memoryWatch struct {
	changes *inbox.Inbox[gcs.Changed]
	end     context.CancelFunc
	ended   chan struct{}
}

// NewMemory makes empty tables.
func NewMemory() *Memory {
	m := &Memory{rows: make(map[gcs.Bucket]map[string]row)}
	for _, b := range gcs.Buckets {
		m.rows[b] = make(map[string]row)
	}
	return m
}

// Watch implements Tables.
func (m *Memory) Watch(life, _ context.Context, changed func(gcs.Changed)) error {
	life, end := context.WithCancel(life)
	w := &memoryWatch{changes: inbox.New[gcs.Changed](), end: end, ended: make(chan struct{})}
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
	for _, c := range first {
		changed(c)
	}
	go func() {
		defer close(w.ended)
		for {
			select {
			case <-w.changes.Ready():
			case <-life.Done():
				return
			}
			for _, c := range w.changes.Take() {
				if life.Err() != nil {
					return
				}
				changed(c)
			}
		}
	}()
	return nil
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
		m.tell(gcs.Changed{Bucket: b, Key: key, Record: e.Record, Revision: m.revision})
		return gcs.Answered{ID: e.ID, Wrote: true, Revision: m.revision}
	case gcs.Delete:
		if e.Revision >= 0 && m.rows[e.Bucket][e.Key].revision != uint64(e.Revision) {
			return gcs.Answered{ID: e.ID, Wrote: true, Conflict: true}
		}
		m.revision++
		delete(m.rows[e.Bucket], e.Key)
		m.tell(gcs.Changed{Bucket: e.Bucket, Key: e.Key, Revision: m.revision})
		return gcs.Answered{ID: e.ID, Wrote: true}
	case gcs.Read:
		r := m.rows[e.Bucket][e.Key]
		return gcs.Answered{ID: e.ID, Record: r.record, Revision: r.revision}
	}
	return gcs.Answered{Err: fmt.Errorf("%T is no call to the tables", e)}
}

// tell queues a change. mu is held.
func (m *Memory) tell(c gcs.Changed) {
	for _, w := range m.watches {
		w.changes.Add(c)
	}
}

// Close implements Tables.
func (m *Memory) Close() {
	m.mu.Lock()
	watches := m.watches
	m.watches = nil
	m.mu.Unlock()
	for _, w := range watches {
		w.end()
		<-w.ended
	}
}
