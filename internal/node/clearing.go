package node

import (
	"context"
	"sync"

	"mobula/internal/ids"
)

// clearing are the jobs of other nodes that were closed here and whose files are being removed, beside everything else. One that is opened again meanwhile
// waits for that: what its workers run would be removed with the rest.
type clearing struct {
	mu    sync.Mutex
	under map[ids.JobID]*removal
}

// removal is that of one job's files.
type removal struct {
	n    int           // how many times the job was closed since there was none
	over chan struct{} // closed when there is no more of it
}

func newClearing() *clearing { return &clearing{under: make(map[ids.JobID]*removal)} }

// begin notes that a job was closed.
func (c *clearing) begin(job ids.JobID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	r := c.under[job]
	if r == nil {
		r = &removal{over: make(chan struct{})}
		c.under[job] = r
	}
	r.n++
}

// end notes that nothing is left of what begin was for. Of other jobs it knows nothing.
func (c *clearing) end(job ids.JobID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if r := c.under[job]; r != nil {
		if r.n--; r.n == 0 {
			delete(c.under, job)
			close(r.over)
		}
	}
}

// wait returns once nothing of a job is being removed, or with ctx's error.
func (c *clearing) wait(ctx context.Context, job ids.JobID) error {
	c.mu.Lock()
	r := c.under[job]
	c.mu.Unlock()
	if r == nil {
		return nil
	}
	select {
	case <-r.over:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
