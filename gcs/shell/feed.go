package shell

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"mobula/gcs"
	"mobula/internal/inbox"
)

// feedMsg is what a feed tells: changes, or rows of a snapshot. A run is a feed from its start; within it each message of changes has a number one
// above that of the one before, and a snapshot has that of the last changes in it.
type feedMsg struct {
	Run    string    `json:"run"`
	Number uint64    `json:"number"`
	Rows   []feedRow `json:"rows,omitempty"`
	Last   bool      `json:"last,omitempty"` // of a snapshot: it is complete

	// Beats are heartbeats of nodes.
	Beats []gcs.Heartbeat `json:"beats,omitempty"`

	// Upto is the last revision in each table, of a complete snapshot; beside heartbeats, that of their table.
	Upto map[gcs.Bucket]uint64 `json:"upto,omitempty"`
}

// feedRow is a row, or one that was removed.
type feedRow struct {
	Bucket   gcs.Bucket      `json:"bucket"`
	Key      string          `json:"key"`
	Revision uint64          `json:"revision"`
	Record   json.RawMessage `json:"record,omitempty"` // none: it was removed
}

const (
	feedRows  = 500  // rows in one message
	feedBeats = 4096 // heartbeats in one message
)

// fed are the tables of which a feed tells the rows.
var fed = append(slices.Clone(gcs.Buckets), gcs.Bundles)

// feed tells nodes that may not watch the tables how they change: each server of the control plane has one, for the nodes that are connected to it, and for
// the server's own core. It keeps a copy of the tables, so that it can give the rows and then the changes, with nothing left out in between.
type feed struct {
	nc      *nats.Conn
	subject string
	news    *inbox.Inbox[any] // gcs.Changed, askedRows and askedRelay
	begun   time.Time
	stop    context.CancelFunc
	wg      sync.WaitGroup

	// Of the goroutine.
	msg   feedMsg // run and number
	rows  map[gcs.Bucket]map[string]gcs.Changed
	upto  map[gcs.Bucket]uint64
	beats *gcs.Told
	alive *gcs.Alive
	asked []askedRelay // that wait

	mu     sync.Mutex
	relays relays // guarded by mu
}

// askedRows asks for a snapshot.
type askedRows struct{ reply string }

// askedRelay asks for the rows, and for the changes that follow.
type askedRelay struct {
	to    *relay
	wrote *wrote
}

// startFeed begins to tell about tables, which the feed closes in the end.
func startFeed(ready context.Context, nc *nats.Conn, server string, tables Tables) (*feed, error) {
	life, stop := context.WithCancel(context.Background())
	f := &feed{nc: nc, subject: feedOf(server), news: inbox.New[any](), begun: time.Now(), stop: stop, msg: feedMsg{Run: rand.Text()},
		rows: make(map[gcs.Bucket]map[string]gcs.Changed), upto: make(map[gcs.Bucket]uint64), beats: gcs.NewTold(), alive: gcs.NewAlive(0)}
	for _, b := range fed {
		f.rows[b] = make(map[string]gcs.Changed)
	}
	if err := tables.Watch(life, ready, func(c gcs.Changed) { f.news.Add(c) }); err != nil {
		stop()
		return nil, err
	}
	f.wg.Go(func() {
		defer tables.Close()
		f.run(life)
	})
	return f, nil
}

// give asks for a snapshot, to be sent there.
func (f *feed) give(reply string) { f.news.Add(askedRows{reply}) }

// close ends the feed, and waits for it.
func (f *feed) close() {
	f.stop()
	f.wg.Wait()
}

// now is the time of the cores.
func (f *feed) now() int64 { return int64(time.Since(f.begun)) }

func (f *feed) run(life context.Context) {
	look := time.NewTimer(0)
	defer look.Stop()
	for {
		select {
		case <-life.Done():
			return
		case <-f.news.Ready():
			f.take(f.news.Take())
			f.tellBeats(f.beats.Due(f.now(), len(f.rows[gcs.Nodes])))
		case <-look.C:
		}
		say, wait := f.alive.Due(f.now())
		if say {
			f.publish(f.subject, nil)
		}
		look.Reset(wait)
	}
}

// take handles what has come. Heartbeats may wait for others. Whatever else comes is told at once.
func (f *feed) take(news []any) {
	var changes []feedRow
	for _, n := range news {
		switch n := n.(type) {
		case gcs.Changed:
			f.pass(n)
			if n.Bucket == gcs.Beats {
				f.hear(n)
			} else {
				changes = append(changes, rowOf(n))
				f.keep(n)
			}
			f.alive.Changed(f.now())
		case askedRows:
			f.tell(changes)
			changes = nil
			f.snapshot(n.reply)
		case askedRelay:
			f.asked = append(f.asked, n)
		}
	}
	f.tell(changes)
	f.openRelays()
}

// count gives the next message that tells something its number.
func (f *feed) count() {
	f.msg.Number++
	f.alive.Said(f.now())
}

// tell tells changes.
func (f *feed) tell(changes []feedRow) {
	for part := range slices.Chunk(changes, feedRows) {
		f.count()
		f.publish(f.subject, part)
	}
}

// tellBeats tells heartbeats.
func (f *feed) tellBeats(all []gcs.Heartbeat) {
	for part := range slices.Chunk(all, feedBeats) {
		f.count()
		m := f.msg
		m.Beats, m.Upto = part, map[gcs.Bucket]uint64{gcs.Beats: f.upto[gcs.Beats]}
		f.send(f.subject, m)
	}
}

// keep has the copy follow a change.
func (f *feed) keep(c gcs.Changed) {
	f.upto[c.Bucket] = c.Revision
	if c.Record == nil {
		delete(f.rows[c.Bucket], c.Key)
	} else {
		f.rows[c.Bucket][c.Key] = c
	}
}

// hear has the copy follow heartbeats, and notes those that are news.
func (f *feed) hear(c gcs.Changed) {
	f.upto[c.Bucket] = c.Revision
	written, _ := c.Record.(gcs.BeatsRecord) // none: the row was removed
	for _, b := range written.Beats {
		at := f.rows[gcs.Nodes][b.Home().String()]
		if row, known := at.Record.(gcs.NodeRecord); known {
			if row, known = row.Beat(b); known {
				at.Record = row
				f.rows[gcs.Nodes][at.Key] = at
				f.beats.Add(b)
			}
		}
	}
}

// rowOf is a change as it is told.
func rowOf(c gcs.Changed) feedRow {
	r := feedRow{Bucket: c.Bucket, Key: c.Key, Revision: c.Revision}
	if c.Record != nil {
		r.Record, _ = json.Marshal(c.Record) // a record has nothing that cannot be encoded
	}
	return r
}

// inOrder gives the rows of a table, as they were written.
func (f *feed) inOrder(b gcs.Bucket) []gcs.Changed {
	return slices.SortedFunc(maps.Values(f.rows[b]), func(a, b gcs.Changed) int { return cmp.Compare(a.Revision, b.Revision) })
}

func (f *feed) snapshot(reply string) {
	for _, b := range fed {
		for part := range slices.Chunk(f.inOrder(b), feedRows) {
			told := make([]feedRow, len(part))
			for i, c := range part {
				told[i] = rowOf(c)
			}
			f.publish(reply, told)
		}
	}
	last := f.msg
	last.Last, last.Upto = true, f.upto
	f.send(reply, last)
}

func (f *feed) publish(subject string, rows []feedRow) {
	m := f.msg
	m.Rows = rows
	f.send(subject, m)
}

// send sends a message. Nobody waits for it: who misses one sees that by the numbers.
func (f *feed) send(subject string, m feedMsg) {
	if data, err := json.Marshal(m); err == nil {
		_ = f.nc.Publish(subject, data)
	}
}
