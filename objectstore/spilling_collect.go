package objectstore

import (
	"mobula/internal/errs"
	"mobula/wire"
)

// lastHope is what is tried before a demand ends with CodeStoreFull: what fills the escape files may be
// handles that no program can reach any more, which only a garbage collection lets go.
type lastHope struct {
	asks int   // since a file was let go
	at   int64 // of the last one
	// ticket is that of the demand they were asked for last: it has waited long enough; those after it have not.
	ticket uint64
}

// hopeAsks is how often clients are asked: one that has just collected takes no notice of the first.
const hopeAsks = 2

// hope asks clients to collect, and tells whether to wait for what comes of it.
func (sl *spilling) hope(d *demand, err *errs.Error) bool {
	if err.Code != errs.CodeStoreFull || sl.space.fallbackBytes == 0 || len(sl.clients.byID) == 0 {
		return false
	}
	due := sl.progress.lastHope.at + int64(sl.cfg.Stall)
	if sl.progress.lastHope.asks > 0 && sl.now < due {
		sl.wakeAt(due)
		return true
	}
	if sl.progress.lastHope.asks == hopeAsks {
		return false
	}
	sl.progress.lastHope.asks++
	sl.progress.lastHope.ticket = d.ticket
	sl.progress.lastHope.at = sl.now
	sl.collect()
	sl.wakeAt(sl.now + int64(sl.cfg.Stall))
	return true
}

// hopeAgain notes that a file was let go: the next demand may hope too.
func (pr *progress) hopeAgain() { pr.lastHope = lastHope{} }

// collect asks every client to drop the handles it no longer uses.
func (sl *spilling) collect() {
	sl.collected = sl.now
	for _, id := range sl.clients.sortedClients() {
		sl.clients.toClient(id, &wire.Collect{})
	}
	sl.counts.Collects++
}

// askCollect asks clients to drop handles they no longer use before anything is written to
// disk; false while they are given time for it.
func (sl *spilling) askCollect() bool {
	if sl.now < sl.spillAt {
		sl.wakeAt(sl.spillAt)
		return false
	}
	if len(sl.clients.byID) == 0 || (sl.collected != 0 && sl.now-sl.collected < int64(sl.cfg.CollectEvery)) {
		return true
	}
	sl.collect()
	if sl.spillAt = sl.after(sl.cfg.CollectWait); sl.spillAt > sl.now {
		sl.wakeAt(sl.spillAt)
		return false
	}
	return true
}
