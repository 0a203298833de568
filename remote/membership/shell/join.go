package shell

import (
	"context"
	"fmt"
	"time"

	"mobula/internal/errs"
	"mobula/remote/membership"
)

// Join exchanges all state with the nodes at these addresses, and so joins their cluster. It gives how many have answered; ErrNoNode if none has.
func (m *Membership) Join(ctx context.Context, addresses []string) (int, error) {
	type outcome struct {
		n   int
		err error
	}
	done := make(chan outcome, 1)
	err := m.begin(func() {
		var o outcome
		for _, a := range addresses { // one at a time: memberlist knows no context
			if ctx.Err() != nil || m.life.Err() != nil {
				break
			}
			n, err := m.list.Join([]string{a})
			o.n += n
			if err != nil {
				o.err = err
			}
		}
		done <- o
	})
	if err != nil {
		return 0, err
	}
	select {
	case o := <-done:
		if o.n == 0 {
			return 0, errs.New(errs.CodeNoNode, "membership: none of %v answers: %v", addresses, o.err)
		}
		return o.n, nil
	case <-ctx.Done():
		return 0, fmt.Errorf("membership: joining %v: %w", addresses, context.Cause(ctx))
	case <-m.life.Done():
		return 0, errStopped()
	}
}

// begin runs f on a goroutine that the end of the component waits for.
func (m *Membership) begin(f func()) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.gone {
		return errStopped()
	}
	m.wg.Go(f)
	return nil
}

func errStopped() error { return errs.New(errs.CodeShutdown, "membership has stopped") }

// defaultGoodbye is how long Leave takes at most if its context has no deadline.
const defaultGoodbye = 5 * time.Second

// Leave tells the others that this node ends in order, so that nobody doubts it or waits for it. It ends when enough of them were told, or with the context. The
// node gossips on until the component is stopped.
func (m *Membership) Leave(ctx context.Context) error {
	m.leaving.Lock()
	defer m.leaving.Unlock()
	if m.life.Err() != nil {
		return errStopped()
	}
	left := defaultGoodbye
	if end, ok := ctx.Deadline(); ok {
		left = time.Until(end)
	}
	if left <= 0 || ctx.Err() != nil {
		return fmt.Errorf("membership: leaving: %w", context.Cause(ctx))
	}
	ctx, cancel := context.WithTimeout(ctx, left)
	defer cancel()
	alone := m.list.NumMembers() <= 1
	told := make(chan struct{})
	m.end(m.self) // when others pass the goodbye on, it is no news
	m.queue.goodbye(membership.Goodbye{Life: m.self}, told)
	if err := m.list.Leave(left); err != nil {
		return fmt.Errorf("membership: %w: %w", err, context.DeadlineExceeded)
	}
	if alone {
		return nil
	}
	select {
	case <-told:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("membership: leaving: %w", context.Cause(ctx))
	case <-m.life.Done():
		return errStopped()
	}
}
