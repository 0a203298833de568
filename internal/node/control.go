package node

import (
	"errors"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"

	"mobula/gcs"
	"mobula/internal/errs"
	"mobula/internal/ids"
)

// control is the control plane as the node uses it. It starts when it is first asked for something, or where an earlier life of
// the node has left its tables: its server has clocks of its own, and a node without named actors has no need of it. What is
// asked before it is up waits.
type control struct {
	n     *Node
	kept  bool      // tables of an earlier life are there; immutable
	once  sync.Once // of the start
	begun atomic.Bool
	ready chan struct{} // closed when g or err is set
	g     *gcs.GCS
	err   error

	mu   sync.Mutex
	jobs map[ids.JobID]gcs.JobRecord // guarded by mu: not announced; nil: it is up, and takes them itself
}

func startControl(n *Node) *control {
	c := &control{n: n, ready: make(chan struct{}), jobs: make(map[ids.JobID]gcs.JobRecord)}
	if n.cfg.NoGCS {
		c.end(errs.New(errs.CodeInvalid, "the node runs without a control plane"))
		return c
	}
	if _, err := os.Lstat(c.dir()); err == nil {
		c.kept = true
		c.begin()
	}
	return c
}

func (c *control) dir() string { return filepath.Join(c.n.dir, "gcs") }

// begin starts it, if nobody has.
func (c *control) begin() {
	c.once.Do(func() {
		c.begun.Store(true)
		go func() {
			defer close(c.ready)
			c.g, c.err = gcs.Start(c.n.sys, gcs.Config{Dir: c.dir(), Node: c.n.cfg.Name, Logger: c.n.cfg.Logger})
			if c.err != nil {
				c.n.cfg.Logger.Error("the control plane did not start; named actors cannot be used", "err", c.err)
				return
			}
			c.n.announce(c.g)
			c.mu.Lock()
			defer c.mu.Unlock()
			for _, r := range c.jobs {
				c.put(r)
			}
			c.jobs = nil
		}()
	})
}

// end keeps it from being started.
func (c *control) end(err error) {
	c.once.Do(func() {
		c.err = err
		close(c.ready)
	})
}

// close waits for a start under way.
func (c *control) close() {
	if c != nil {
		c.end(errs.New(errs.CodeShutdown, "node %s is stopping", c.n.cfg.Name))
		<-c.ready
	}
}

// jobBegan has a job in the table of jobs, at the latest when somebody asks for anything.
func (c *control) jobBegan(r gcs.JobRecord) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.jobs != nil {
		c.jobs[r.Job] = r
		return
	}
	c.put(r)
}

func (c *control) put(r gcs.JobRecord) {
	c.g.Ask(gcs.Put{Record: r}, func(a gcs.Reply) {
		if a.Err != nil && !errors.Is(a.Err, errs.ErrShutdown) {
			c.n.limited.warn("a job could not be announced", "job", r.Job, "err", a.Err)
		}
	})
}

// jobEnded takes a job out of the table. One of an earlier life is in it, whether it was announced or not.
func (c *control) jobEnded(job ids.JobID) {
	c.mu.Lock()
	held := c.jobs != nil
	delete(c.jobs, job)
	c.mu.Unlock()
	if !held || c.kept {
		c.n.ask(gcs.Remove{Bucket: gcs.Jobs, Key: job.String()}, func(gcs.Reply) {})
	}
}

// ask asks the control plane; done is called once, maybe on this goroutine.
func (n *Node) ask(op gcs.Op, done func(gcs.Reply)) {
	c := n.gcs
	put := func() {
		if c.err != nil {
			done(gcs.Reply{Err: c.err})
			return
		}
		c.g.Ask(op, done)
	}
	select {
	case <-c.ready:
		put()
	default:
		c.begin()
		n.work.Go(func() {
			<-c.ready
			put()
		})
	}
}
