package mobula

import (
	"context"

	"mobula/internal/call"
	"mobula/internal/state"
)

// Status gives the state of the node. Figures of the object store may be a few seconds old;
// Store.Age says how old.
func (c *Cluster) Status(ctx context.Context) (NodeStatus, error) {
	return ask[NodeStatus](ctx, c, state.MethodStatus, struct{}{})
}

// ListTasks lists tasks of all jobs, under way or remembered, the last submitted first. Calls of actors in the node's process are listed while they are under way.
func (c *Cluster) ListTasks(ctx context.Context, q Query) (Page[TaskState], error) {
	return ask[Page[TaskState]](ctx, c, state.MethodTasks, q)
}

// ListActors lists actors, the last created first.
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

// ListJobs lists the jobs that have not ended, with or without a driver, the newest first.
func (c *Cluster) ListJobs(ctx context.Context, q Query) (Page[JobState], error) {
	return ask[Page[JobState]](ctx, c, state.MethodJobs, q)
}

// ListGraphs lists the task graphs that run, the newest first.
func (c *Cluster) ListGraphs(ctx context.Context, q Query) (Page[GraphState], error) {
	return ask[Page[GraphState]](ctx, c, state.MethodGraphs, q)
}

// ListNodes lists the nodes of the cluster, without those that have stopped in order, as the control plane knows them. One that does not say within a second what
// it has free is in Unreachable too.
func (c *Cluster) ListNodes(ctx context.Context, q Query) (Page[NodeState], error) {
	return ask[Page[NodeState]](ctx, c, state.MethodNodes, q)
}

// ListComponents lists the node's own supervised parts.
func (c *Cluster) ListComponents(ctx context.Context, q Query) (Page[ComponentState], error) {
	return ask[Page[ComponentState]](ctx, c, state.MethodComponents, q)
}

// Explain tells why a task is pending, or who holds an object; id is what ID of a Ref or ActorRef gives.
func (c *Cluster) Explain(ctx context.Context, id string) (Explanation, error) {
	return ask[Explanation](ctx, c, state.MethodExplain, state.ExplainRequest{ID: id})
}

// Logs gives the end of what workers wrote, at most that many bytes of each output (0: 64 KiB). The id of a worker is
// that of ListWorkers, or "worker/3" as in errors. The id of a task is that of Ref.ID up to the colon; Logs then gives
// the lines of all workers that name the task, as lines logged by slog with the task's context do. Without an id it
// lists the logs. Logs outlive their worker.
func (c *Cluster) Logs(ctx context.Context, id string, bytes int64) ([]LogStream, error) {
	type logs struct {
		Streams []LogStream `json:"streams"`
	}
	l, err := ask[logs](ctx, c, state.MethodLogs, state.LogsRequest{ID: id, Bytes: bytes})
	return l.Streams, err
}

func ask[Out any](ctx context.Context, c *Cluster, method string, in any) (out Out, err error) {
	err = call.Request(ctx, c.session.Client, method, in, &out)
	return out, err
}
