package mobula

import (
	"context"

	"mobula/internal/state"
)

// Here times are Unix nanoseconds and sizes bytes.
type (
	// NodeStatus is the node at a glance.
	NodeStatus = state.Status
	// TaskState is a row of ListTasks.
	TaskState = state.Task
	// ActorState is a row of ListActors.
	ActorState = state.Actor
	// ObjectState is a row of ListObjects.
	ObjectState = state.Object
	// WorkerState is a row of ListWorkers.
	WorkerState = state.Worker
	// ComponentState is a row of ListComponents.
	ComponentState = state.Component
	// Explanation says why a task or object is as it is.
	Explanation = state.Explanation
	// Query says which rows: filters on the rows' JSON names, a limit (0: 100; at most 10,000), and
	// the cursor of the page before.
	Query = state.Query
	// Filter is a condition on one field.
	Filter = state.Filter
)

// Page is a part of a list; Truncated and Next tell of the rest, which is never left out silently.
type Page[T any] = state.Page[T]

// Status tells how the node is. Figures of the object store may be a few seconds old; Store.Age
// says how much.
func (c *Cluster) Status(ctx context.Context) (NodeStatus, error) {
	return ask[NodeStatus](ctx, c, state.MethodStatus, struct{}{})
}

// ListTasks lists tasks, of all jobs, that are under way or remembered.
func (c *Cluster) ListTasks(ctx context.Context, q Query) (Page[TaskState], error) {
	return ask[Page[TaskState]](ctx, c, state.MethodTasks, q)
}

// ListActors lists actors.
func (c *Cluster) ListActors(ctx context.Context, q Query) (Page[ActorState], error) {
	return ask[Page[ActorState]](ctx, c, state.MethodActors, q)
}

// ListObjects lists objects, in memory and spilled.
func (c *Cluster) ListObjects(ctx context.Context, q Query) (Page[ObjectState], error) {
	return ask[Page[ObjectState]](ctx, c, state.MethodObjects, q)
}

// ListWorkers lists worker processes and drivers.
func (c *Cluster) ListWorkers(ctx context.Context, q Query) (Page[WorkerState], error) {
	return ask[Page[WorkerState]](ctx, c, state.MethodWorkers, q)
}

// ListComponents lists the node's own supervised parts.
func (c *Cluster) ListComponents(ctx context.Context, q Query) (Page[ComponentState], error) {
	return ask[Page[ComponentState]](ctx, c, state.MethodComponents, q)
}

// Explain tells why a task is pending, or who holds an object; id is what ID of a Ref or ActorRef gives.
func (c *Cluster) Explain(ctx context.Context, id string) (Explanation, error) {
	return ask[Explanation](ctx, c, state.MethodExplain, state.ExplainRequest{ID: id})
}

func ask[Out any](ctx context.Context, c *Cluster, method string, in any) (out Out, err error) {
	err = request(ctx, c.client, method, in, &out)
	return out, err
}
