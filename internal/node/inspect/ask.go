package inspect

import (
	"context"
	"fmt"

	"mobula/actors"
	"mobula/gcs/directory"
	"mobula/internal/errs"
	"mobula/objectstore"
	"mobula/raylet"
	"mobula/raylet/cluster"
	"mobula/raylet/owner"
)

// Question is an event of the node's own to an owner: it reads the core and changes nothing. The owner's shell answers it between two steps.
type Question struct {
	owner.Event
	Ask func(*owner.Core)
}

// InOwner runs f on an owner's goroutine, between two steps, and waits for what it gives. A
// panic of f is its error: the owner does not feel it. f may run again after a restart of the
// owner, when nobody waits for it any more: it must write nothing but what it returns.
func InOwner[T any](ctx context.Context, o *Owner, f func(*owner.Core) T) (T, error) {
	return inside(ctx, o.Ref, func(run func(*owner.Core)) owner.Event { return Question{Ask: run} }, f)
}

// inRaylet does the same with the scheduler and pool.
func inRaylet[T any](ctx context.Context, n *Inspector, f func(*raylet.Core) T) (T, error) {
	return inside(ctx, n.node.Parts().Raylet, func(run func(*raylet.Core)) raylet.Event { return raylet.Inspect{Do: run} }, f)
}

// inCluster does the same with the core that chooses nodes, if the node is of a cluster.
func inCluster[T any](ctx context.Context, n *Inspector, f func(*cluster.Core) T) (none T, err error) {
	if n.node.Parts().Cluster == nil {
		return none, nil
	}
	return inside(ctx, n.node.Parts().Cluster, func(run func(*cluster.Core)) cluster.Event { return cluster.Inspect{Do: run} }, f)
}

// inStore does the same with the object store.
func inStore[T any](ctx context.Context, n *Inspector, f func(*objectstore.Core) T) (T, error) {
	return inside(ctx, n.node.Parts().Store.Ref(), func(run func(*objectstore.Core)) objectstore.Event { return objectstore.Inspect{Do: run} }, f)
}

// inDirectory does the same with the directory of actors.
func inDirectory[T any](ctx context.Context, n *Inspector, f func(*directory.Core) T) (T, error) {
	return inside(ctx, n.node.Parts().Directory, func(run func(*directory.Core)) directory.Event { return directory.Inspect{Do: run} }, f)
}

type answered[T any] struct {
	v   T
	err error
}

// inside sends a question to a component and waits for its answer, the end of ctx, or of the
// component.
func inside[E, C, T any](ctx context.Context, ref *actors.Ref[E], event func(func(C)) E, f func(C) T) (v T, err error) {
	answer := make(chan answered[T], 1)
	err = ref.Send(ctx, event(func(c C) {
		select {
		case answer <- guarded(c, f):
		default: // asked again after a restart
		}
	}))
	if err != nil {
		return v, fmt.Errorf("%s: %w", ref.Name(), err)
	}
	select {
	case a := <-answer:
		return a.v, a.err
	case <-ctx.Done():
		return v, fmt.Errorf("%s does not answer: %w", ref.Name(), context.Cause(ctx))
	case <-ref.Done():
		return v, fmt.Errorf("%s: %w", ref.Name(), actors.ErrStopped)
	}
}

func guarded[C, T any](c C, f func(C) T) (a answered[T]) {
	defer func() {
		if p := recover(); p != nil {
			a.err = errs.New(errs.CodePanic, "a question panicked: %v", p)
		}
	}()
	a.v = f(c)
	return a
}
