package model

import (
	"time"

	"mobula/gcs"
)

// log is what the leader writes to the disks: with three copies all that waits together, with one copy row by row.
type log struct {
	waits []write
	busy  bool
}

type write struct {
	gcs.Write
	answer func(gcs.Answered)
}

// append has a row written, if it has the revision then that the write asks for.
func (t *Tables) append(w write) {
	t.log.waits = append(t.log.waits, w)
	if !t.log.busy {
		t.sync()
	}
}

// sync writes what waits to the disks.
func (t *Tables) sync() {
	l := &t.log
	if l.busy = len(l.waits) > 0; !l.busy {
		return
	}
	batch, takes := l.waits[:1], t.cfg.Costs.Sync
	if copies := t.cfg.copies(); copies > 1 {
		batch = l.waits
		takes += time.Duration(t.latency() + t.latency()) // the first of the others to answer makes more than half
		for _, w := range batch {
			t.servers[0].sent += uint64((copies - 1) * (t.size(w.Record) + askHead))
		}
	}
	l.waits = append([]write(nil), l.waits[len(batch):]...)
	t.clock.After(takes, func() {
		for _, w := range batch {
			t.commit(w)
		}
		t.sync()
	})
}

// commit makes a write and shows it to all servers, each of which has one watch.
func (t *Tables) commit(w write) {
	b, key := w.Record.Bucket(), w.Record.Key()
	if has := t.rows[b][key].Revision; w.Revision >= 0 && has != uint64(w.Revision) {
		w.answer(gcs.Answered{Wrote: true, Conflict: true, Revision: has})
		return
	}
	change, leader := t.put(w.Record), t.servers[0]
	w.answer(gcs.Answered{Wrote: true, Revision: change.Revision})
	for _, s := range t.servers {
		leader.work(t.cfg.Costs.Send, func() { leader.show(s, change) })
	}
}

// show has the watch of a server show a change, in order.
func (s *server) show(to *server, c gcs.Changed) {
	if s != to {
		s.sent += uint64(s.t.size(c.Record) + feedHead)
		to.seen = max(to.seen, s.t.clock.Now()+s.t.latency())
	}
	s.t.clock.At(to.seen, func() { to.shown(c) })
}

// shown takes a change that the watch shows.
func (s *server) shown(c gcs.Changed) {
	s.step(c)
	s.news(c)
}
