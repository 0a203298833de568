package objectstore

import "errors"

// maxTries is how often a read that failed for no lasting reason is made, with a pause before each that
// doubles from Config.RetrySpill: together 3 s by default. Storage that is away for a moment, or a process that
// has no descriptor left, is no reason to lose a copy.
const maxTries = 6

// reread is a restore that pauses before its next try. It keeps its extent and has a job, so that it ends as any
// other does, but takes no place among the reads: those of other objects may well work.
type reread struct {
	job uint64
	d   *demand
	at  int64
}

// readLater has a restore whose read failed tried again after a pause.
func (c *Core) readLater(d *demand) {
	c.rereads = append(c.rereads, reread{c.newJob(d), d, c.after(c.cfg.RetrySpill << (d.tries - 1))})
}

var errWithdrawn = errors.New("nobody waits for it any more")

// pumpRereads starts those whose pause is over, as far as there are places.
func (c *Core) pumpRereads() {
	if len(c.rereads) == 0 {
		return
	}
	all := c.rereads
	c.rereads = nil
	for _, r := range all {
		switch {
		case r.d.cancelled:
			c.restores++
			c.restoreDone(RestoreDone{r.job, errWithdrawn})
		case c.now < r.at:
			c.rereads = append(c.rereads, r)
			c.wakeAt(r.at)
		case c.restores >= c.cfg.MaxRestores:
			c.rereads = append(c.rereads, r) // a read's end steps the core
		default:
			c.restores++
			c.readInto(r.d, r.job)
		}
	}
}
