package node

import (
	"context"
	"fmt"

	"mobula/actors"
	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/objectstore"
	"mobula/raylet"
	"mobula/raylet/owner"
)

type clientID = ids.ClientID

// inOwner runs f on an owner's goroutine, between two steps, and waits for it. A panic of f
// is its error: the owner does not feel it.
func inOwner(ctx context.Context, o *ownerActor, f func(*owner.Core)) error {
	return await(ctx, o.ref.Name(), o.ref.Done(), func(done func(error)) error {
		return o.ref.Send(ctx, question{ask: func(c *owner.Core) { done(guard(func() { f(c) })) }})
	})
}

// inRaylet does the same with the scheduler and pool.
func (n *Node) inRaylet(ctx context.Context, f func(*raylet.Core)) error {
	return await(ctx, n.raylet.Name(), n.raylet.Done(), func(done func(error)) error {
		return n.raylet.Send(ctx, raylet.Inspect{Do: func(c *raylet.Core) { done(guard(func() { f(c) })) }})
	})
}

// inStore does the same with the object store.
func (n *Node) inStore(ctx context.Context, f func(*objectstore.Core)) error {
	ref := n.store.Ref()
	return await(ctx, ref.Name(), ref.Done(), func(done func(error)) error {
		return n.store.Send(ctx, objectstore.Inspect{Do: func(c *objectstore.Core) { done(guard(func() { f(c) })) }})
	})
}

func guard(f func()) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = errs.New(errs.CodePanic, "a question panicked: %v", p)
		}
	}()
	f()
	return nil
}

// await sends a question and waits for its answer, the end of ctx, or of the component.
func await(ctx context.Context, name string, gone <-chan struct{}, send func(done func(error)) error) error {
	answer := make(chan error, 1)
	err := send(func(err error) {
		select {
		case answer <- err:
		default: // asked again after a restart
		}
	})
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	select {
	case err := <-answer:
		return err
	case <-ctx.Done():
		return fmt.Errorf("%s does not answer: %w", name, context.Cause(ctx))
	case <-gone:
		return fmt.Errorf("%s: %w", name, actors.ErrStopped)
	}
}
