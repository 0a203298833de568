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
func (c *Core) hope(d *demand, err *errs.Error) bool {
	if err.Code != errs.CodeStoreFull || c.fallbackBytes == 0 || len(c.clients) == 0 {
		return false
	}
	due := c.lastHope.at + int64(c.cfg.Stall)
	if c.lastHope.asks > 0 && c.now < due {
		c.wakeAt(due)
		return true
	}
	if c.lastHope.asks == hopeAsks {
		return false
	}
	c.lastHope.asks++
	c.lastHope.ticket = d.ticket
	c.lastHope.at = c.now
	c.collect()
	c.wakeAt(c.now + int64(c.cfg.Stall))
	return true
}

// hopeAgain notes that a file was let go: the next demand may hope too.
func (c *Core) hopeAgain() { c.lastHope = lastHope{} }

// collect asks every client to drop the handles it no longer uses.
func (c *Core) collect() {
	c.collected = c.now
	for _, id := range c.sortedClients() {
		c.toClient(id, &wire.Collect{})
	}
	c.counts.Collects++
}
