package shell

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"mobula/gcs"
	"mobula/internal/ids"
	"mobula/internal/inbox"
)

// following is the watch of a node that may not watch the tables: it follows the feed of the server that it is connected to. Whenever it has missed
// something, or is connected to another server, it takes a snapshot and tells how that differs from what it has told.
type following struct {
	nc    *nats.Conn
	home  ids.Home
	wrote *wrote
	mu    sync.Mutex
	ends  []func() // guarded by mu: each ends a watch and waits for it
}

// wrote is what this node has written itself of late: a snapshot without it is an old one.
type wrote struct {
	mu   sync.Mutex
	last map[gcs.Bucket]written // guarded by mu
}

type written struct {
	revision uint64
	at       time.Time
}

// wroteFor is how long it counts. A row that was removed since is remembered for longer (markerTTL).
const wroteFor = time.Minute

func (w *wrote) note(b gcs.Bucket, revision uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.last == nil {
		w.last = make(map[gcs.Bucket]written)
	}
	if revision > w.last[b].revision {
		w.last[b] = written{revision, time.Now()}
	}
}

// in tells whether all of it is among the changes up to these revisions.
func (w *wrote) in(upto map[gcs.Bucket]uint64) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for b, l := range w.last {
		if upto[b] < l.revision && time.Since(l.at) < wroteFor {
			return false
		}
	}
	return true
}

// Watch implements Tables.
func (w *following) Watch(life, ready context.Context, changed func(gcs.Changed)) error {
	life, stop := context.WithCancel(life)
	f := &follower{nc: w.nc, home: w.home, wrote: w.wrote, changed: changed, silence: feedSilence, told: make(map[rowKey]uint64), seen: make(map[gcs.Bucket]uint64), rows: make(map[string]gcs.NodeRecord)}
	first, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		f.run(life, first)
	}()
	end := func() {
		stop()
		<-done
	}
	select {
	case <-first:
	case <-ready.Done():
		end()
		return fmt.Errorf("watch the tables: %w", context.Cause(ready))
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ends = append(w.ends, end)
	return nil
}

// Close implements Tables.
func (w *following) Close() {
	w.mu.Lock()
	ends := w.ends
	w.ends = nil
	w.mu.Unlock()
	for _, end := range ends {
		end()
	}
}

type rowKey struct {
	bucket gcs.Bucket
	key    string
}

// follower is one watch, on one goroutine.
type follower struct {
	nc      *nats.Conn
	home    ids.Home
	wrote   *wrote
	changed func(gcs.Changed)
	told    map[rowKey]uint64     // the revision of each row that was told
	seen    map[gcs.Bucket]uint64 // the last revision that was told in the tables of nodes and of heartbeats, of which the second changes every second
	at      feedMsg               // run and number up to which it was told
	silence time.Duration         // how long the server may be silent

	rows map[string]gcs.NodeRecord // those of nodes, by key, as they were told: a heartbeat changes one
}

// Times of a follower: how long the server that it is connected to may be silent, at first and, if none has told a change since, at most, and how long a snapshot may
// take to go on. A server that is stopped is silent, and so is each one that is cut off from the tables.
const (
	feedSilence    = 4 * time.Second
	feedSilenceMax = 20 * time.Second
	snapshotTime   = 5 * time.Second
)

var errMissed = errors.New("control plane: changes of the tables were missed")

// run follows until the life ends, and closes first once all rows were told.
func (f *follower) run(life context.Context, first chan struct{}) {
	for life.Err() == nil {
		server := f.nc.ConnectedServerName()
		err := f.follow(life, server, func() {
			if first != nil {
				close(first)
				first = nil
			}
		})
		if errors.Is(err, errAway) && f.nc.ConnectedServerName() == server {
			f.silence = min(2*f.silence, feedSilenceMax)
			_ = f.nc.ForceReconnect() // to another server, if there is one; a connection that is closed ends the life too
		}
		sleep(life, pauseTime)
	}
}

// follow follows one server's feed until something is missed.
func (f *follower) follow(life context.Context, server string, complete func()) error {
	if server == "" {
		return errMissed
	}
	news := inbox.New[*nats.Msg]()
	here := func(m *nats.Msg) { news.Add(m) }
	answer := f.nc.NewRespInbox()
	for _, subject := range []string{feedOf(server), answer} {
		sub, err := f.nc.Subscribe(subject, here)
		if err != nil {
			return err
		}
		defer func() { _ = sub.Unsubscribe() }() // the connection may be gone, and the subscription with it
		if err := sub.SetPendingLimits(-1, -1); err != nil {
			return err
		}
	}
	if err := f.nc.PublishRequest(requests(f.home, "rows."+server), answer, nil); err != nil {
		return err
	}
	p := &partial{}
	silent, status := time.NewTimer(snapshotTime), f.nc.StatusChanged()
	defer silent.Stop()
	defer f.nc.RemoveStatusListener(status)
	for {
		if f.nc.ConnectedServerName() != server {
			return errMissed
		}
		select {
		case <-life.Done():
			return life.Err()
		case <-silent.C:
			return errAway
		case <-status:
			continue
		case <-news.Ready():
		}
		for _, raw := range news.Take() {
			var m feedMsg
			if err := json.Unmarshal(raw.Data, &m); err != nil { // that nobody answers has no data
				return errMissed
			}
			if err := f.hear(m, raw.Subject == answer, p); err != nil {
				return err
			}
			if p.done {
				complete()
				silent.Reset(f.silence)
			} else if raw.Subject == answer {
				silent.Reset(snapshotTime)
			}
		}
	}
}

// partial is a snapshot that comes.
type partial struct {
	rows    []feedRow
	waiting []feedMsg // changes that came before it was complete
	done    bool
}

// hear takes a message: a part of the snapshot, or of the feed.
func (f *follower) hear(m feedMsg, snapshot bool, p *partial) error {
	switch {
	case !snapshot && !p.done:
		p.waiting = append(p.waiting, m)
	case !snapshot:
		return f.take(m)
	case !m.Last:
		p.rows = append(p.rows, m.Rows...)
	case f.behind(m.Upto) || !f.wrote.in(m.Upto): // this server is behind the one before, or behind this node
		return errMissed
	default:
		f.tell(p.rows)
		f.forget(p.rows)
		f.at, p.done = feedMsg{Run: m.Run, Number: m.Number}, true
		for _, w := range p.waiting {
			if err := f.take(w); err != nil {
				return err
			}
		}
		p.rows, p.waiting = nil, nil
	}
	return nil
}

// behind tells whether a snapshot lacks something that was told.
func (f *follower) behind(upto map[gcs.Bucket]uint64) bool {
	for b, revision := range f.seen {
		if upto[b] < revision {
			return true
		}
	}
	return false
}

// see notes a revision that was told.
func (f *follower) see(b gcs.Bucket, revision uint64) { f.seen[b] = max(f.seen[b], revision) }

// take tells a message's changes, if they are the next ones.
func (f *follower) take(m feedMsg) error {
	switch {
	case m.Run != f.at.Run:
		return errMissed
	case m.Number <= f.at.Number: // it is in the snapshot, or tells nothing
		return nil
	case m.Number > f.at.Number+1 || m.Rows == nil && m.Beats == nil:
		return errMissed
	}
	f.at.Number, f.silence = m.Number, feedSilence
	f.tell(m.Rows)
	for _, b := range m.Beats {
		f.beat(b)
	}
	if len(m.Beats) > 0 {
		f.see(gcs.Beats, m.Upto[gcs.Beats])
	}
	return nil
}

// beat tells a row that has a later heartbeat, and is otherwise as it was. One that is not known is gone, or this release cannot read it.
func (f *follower) beat(b gcs.Heartbeat) {
	if row, later := f.rows[b.Home().String()].Beat(b); later {
		key := rowKey{gcs.Nodes, row.Key()}
		f.note(key, f.told[key], row)
	}
}

// note tells a row, and remembers that.
func (f *follower) note(key rowKey, revision uint64, r gcs.Record) {
	f.told[key] = revision
	if n, ok := r.(gcs.NodeRecord); ok {
		f.rows[key.key] = n
	}
	f.changed(gcs.Changed{Bucket: key.bucket, Key: key.key, Revision: revision, Record: r})
}

// drop tells that a row is gone.
func (f *follower) drop(key rowKey, revision uint64) {
	delete(f.told, key)
	if key.bucket == gcs.Nodes {
		delete(f.rows, key.key)
	}
	f.changed(gcs.Changed{Bucket: key.bucket, Key: key.key, Revision: revision})
}

// tell passes rows on that are newer than what was told.
func (f *follower) tell(rows []feedRow) {
	for _, r := range rows {
		key := rowKey{r.Bucket, r.Key}
		if r.Revision <= f.told[key] {
			continue
		}
		if r.Bucket == gcs.Nodes {
			f.see(r.Bucket, r.Revision)
		}
		if r.Record == nil {
			if _, known := f.told[key]; known {
				f.drop(key, r.Revision)
			}
			continue
		}
		record, err := gcs.ParseRecord(r.Bucket, r.Record)
		if err != nil {
			continue // a row of a later version that this one cannot read: do not show it
		}
		f.note(key, r.Revision, record)
	}
}

// forget tells that rows are gone that a snapshot does not have.
func (f *follower) forget(snapshot []feedRow) {
	seen := make(map[rowKey]bool, len(snapshot))
	for _, r := range snapshot {
		seen[rowKey{r.Bucket, r.Key}] = true
	}
	for key, revision := range f.told {
		if !seen[key] {
			f.drop(key, revision)
		}
	}
}

// sleep waits, or for the end of the context.
func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}
