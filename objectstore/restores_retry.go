package objectstore

import "errors"

// maxTries is how often a read that failed for no lasting reason is made, with a pause before each that
// doubles from Config.RetrySpill: together 3 s by default. Storage that is away for a moment, or a process that
// has no descriptor left, is no reason to lose a copy.
const maxTries = 6

// retryRead has a restore whose read failed tried again after a pause.
func (rs *restores) retryRead(d *demand) {
	rs.readRetries = append(rs.readRetries, readRetry{rs.newJob(d), d, rs.after(rs.cfg.RetrySpill << (d.tries - 1))})
}

var errWithdrawn = errors.New("nobody waits for it any more")

// startReadRetries starts those whose pause is over, as far as there are places.
func (rs *restores) startReadRetries() {
	if len(rs.readRetries) == 0 {
		return
	}
	all := rs.readRetries
	rs.readRetries = nil
	for _, r := range all {
		switch {
		case r.d.cancelled:
			*rs.reads(r.d.lane)++
			rs.restoreDone(RestoreDone{r.job, errWithdrawn})
		case rs.now < r.at:
			rs.readRetries = append(rs.readRetries, r)
			rs.wakeAt(r.at)
		case *rs.reads(r.d.lane) >= rs.cfg.MaxRestores:
			rs.readRetries = append(rs.readRetries, r) // a read's end steps the core
		default:
			*rs.reads(r.d.lane)++
			rs.readInto(r.d, r.job)
		}
	}
}
