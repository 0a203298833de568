package inspect

import (
	"context"
	"time"

	"mobula/internal/errs"
	"mobula/raylet/owner"
)

const (
	scanPart = 500 // records looked at in one go: 30 us of the owner's time, 100 us where each becomes a row
	// scanRest is how many times as long as a part took its owner is then left alone, while it
	// has work: a list in a loop takes about 2 % of it, whatever the number of tasks.
	scanRest = 50
)

// scanOwner goes through an owner's records without holding it up: begin starts the scan, next
// makes rows of the next records, on the owner's goroutine, until there are none, and take
// gets them, here. Only one scan is under way at a time.
func scanOwner[R any](ctx context.Context, n *Inspector, o *Owner, begin func(*owner.Core) *owner.Scan,
	next func(*owner.Scan, *rowsOf[R]) bool, take func(*rowsOf[R])) (err error) {
	select {
	case n.scanning <- struct{}{}:
		defer func() { <-n.scanning }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	scan, err := InOwner(ctx, o, begin)
	if err != nil {
		return err
	}
	// Behind whatever part of it may still be under way.
	defer func() {
		if o.Ref.Post(Question{Ask: func(*owner.Core) { scan.Stop() }}) != nil {
			scan.Stop()
		}
	}()
	var was owner.Counters
	for {
		p, err := InOwner(ctx, o, func(c *owner.Core) *rowsOf[R] {
			p, start := new(rowsOf[R]), time.Now()
			if p.other = !scan.Of(c); !p.other {
				p.more = next(scan, p)
			}
			p.counts, p.took = c.Counters(), time.Since(start)
			return p
		})
		switch {
		case err != nil:
			return err
		case p.other:
			return errs.New(errs.CodeComponentFailed, "%s restarted while it was looked through; ask again", o.Ref.Name())
		case !p.more:
			return nil
		}
		take(p)
		if busy := p.counts.Finished+p.counts.Submitted != was.Finished+was.Submitted; busy {
			rest(ctx, p.took*scanRest)
		}
		was = p.counts
	}
}

// rowsOf is what one look at the owner gave.
type rowsOf[R any] struct {
	rows    []R
	skipped int // records that count, and of which no row was made
	more    bool
	other   bool // the owner's core is not the one that the scan is of
	counts  owner.Counters
	took    time.Duration
}

func rest(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done(): // the next question says so
	}
}
