package objectstore

import "mobula/wire"

// maxCollectRequests is how often clients are asked: one that has just collected takes no notice of the first.
const maxCollectRequests = 2

// collectAndWait asks clients to collect before more is in files than the disk budget, and tells whether to wait for what comes of it.
func (sl *spilling) collectAndWait(d *demand) bool {
	if sl.space.fallbackBytes == 0 || len(sl.clients.byID) == 0 {
		return false
	}
	due := sl.progress.lastCollect.at + int64(sl.cfg.Stall)
	if sl.progress.lastCollect.asks > 0 && sl.now < due {
		sl.wakeAt(due)
		return true
	}
	if sl.progress.lastCollect.asks == maxCollectRequests {
		return false
	}
	sl.progress.lastCollect.asks++
	sl.progress.lastCollect.ticket = d.ticket
	sl.progress.lastCollect.at = sl.now
	sl.collect()
	sl.objects.askOwners()
	sl.wakeAt(sl.now + int64(sl.cfg.Stall))
	return true
}

// resetCollect notes that a file was let go: the next demand may have clients asked again.
func (pr *progress) resetCollect() { pr.lastCollect = collectState{} }

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
