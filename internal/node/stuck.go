package node

import (
	"context"
	"errors"

	"mobula/internal/errs"
	"mobula/worker"
)

// closeLocals closes what a job has in this process. A function that does not look at its context
// cannot be ended: each part gets a share of the time, so that the rest is closed in order.
func (n *Node) closeLocals(ctx context.Context, cs []closer) {
	for _, c := range cs {
		short, cancel := context.WithTimeout(ctx, n.cfg.CloseTimeout/4)
		err := c.Close(short)
		cancel()
		if err == nil {
			continue
		}
		if _, ok := c.(*worker.Executor); ok {
			err = errs.New(errs.CodeShutdown, "tasks in this process still run though their context has ended, %v ago: a function must return when its context ends, or run in a worker process: %v", n.cfg.CloseTimeout/4, err)
		}
		n.cfg.Logger.Warn("a part of a job in this process did not close", "err", err)
		n.mu.Lock()
		n.stuck = errors.Join(n.stuck, err)
		n.mu.Unlock()
	}
}
