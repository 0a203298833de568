package node

import (
	"context"
	"time"

	"mobula/internal/errs"
	"mobula/raylet/owner"
)

const (
	scanPart = 500 // records looked at in one go: some 100 us of the owner's time
	// scanRest is how many times as long as a part took its owner is then left alone, while it
	// has work: a list in a loop takes about 2 % of it, whatever the number of tasks.
	scanRest = 50
)

// scanOwner goes through an owner's records without holding it up: begin starts the scan, next
// makes a part into rows on the owner's goroutine, and take, here, gets them. Only
// one scan is under way at a time.
func scanOwner[R any](ctx context.Context, n *Node, o *ownerActor, begin func(*owner.Core) *owner.Scan,
	next func(*owner.Scan, []R) ([]R, bool), take func([]R)) (err error) {
	select {
	case n.obs.scanning <- struct{}{}:
		defer func() { <-n.obs.scanning }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	var scan *owner.Scan
	defer func() {
		if scan != nil {
			endScan(o, scan, err)
		}
	}()
	var was owner.Counters
	for {
		p := new(part[R])
		err := inOwner(ctx, o, func(c *owner.Core) {
			start := time.Now()
			if scan == nil {
				scan = begin(c)
			}
			if p.other = !scan.Of(c); p.other {
				return
			}
			p.rows, p.more = next(scan, make([]R, 0, scanPart))
			p.counts, p.took = c.Counters(), time.Since(start)
		})
		switch {
		case err != nil:
			return err
		case p.other:
			return errs.New(errs.CodeComponentFailed, "%s restarted while it was looked through; ask again", o.ref.Name())
		case !p.more:
			return nil
		}
		take(p.rows)
		if busy := p.counts.Finished+p.counts.Submitted != was.Finished+was.Submitted; busy {
			rest(ctx, p.took*scanRest)
		}
		was = p.counts
	}
}

// part is what one look at the owner gave.
type part[R any] struct {
	rows   []R
	more   bool
	other  bool // the owner's core is not the one that the scan is of
	counts owner.Counters
	took   time.Duration
}

func rest(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done(): // the next question says so
	}
}

// endScan stops a scan where no part of it can be under way: after a question that was not
// answered that is behind it in the owner's mailbox.
func endScan(o *ownerActor, scan *owner.Scan, err error) {
	if err == nil || o.ref.Post(question{ask: func(*owner.Core) { scan.Stop() }}) != nil {
		scan.Stop()
	}
}
