package node

import (
	"context"

	"mobula/graph/run"
	runshell "mobula/graph/run/shell"
	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/internal/registry"
	"mobula/internal/state"
)

// startGraphs prepares the node to run task graphs, below the raylet.
func (n *Node) startGraphs() {
	n.graphs = &runshell.Host{
		Capacity: run.Capacity{Threads: int(max(1, n.cfg.CPUs)), Memory: int64(n.cfg.StoreBytes), Limit: int64(n.cfg.MemoryLimit)},
		Parent:   n.rayletSup, Heaps: n.heaped.Load,
	}
	n.system = map[string]*registry.Function{run.Func: n.graphs.Function()}
}

// systemFunction finds a function that the node itself runs.
func (n *Node) systemFunction(name string) (*registry.Function, bool) {
	f, ok := n.system[name]
	return f, ok
}

// secede takes what a task says of its place in a graph. A task that is in none needs nothing said.
func (n *Node) secede(_ context.Context, r state.SecedeRequest) (empty, error) {
	task, ok := ids.TaskOf(r.Task)
	parent, also := ids.TaskOf(r.Parent)
	if !ok || !also {
		return empty{}, errs.New(errs.CodeInvalid, "task and parent have %d and %d bytes, want %d", len(r.Task), len(r.Parent), ids.TaskSize)
	}
	n.graphs.Secede(parent, task, r.Back)
	return empty{}, nil
}

// runningGraphs gives the task graphs that run, as lists show them.
func (n *Node) runningGraphs() []state.Graph {
	out := []state.Graph{}
	for _, p := range n.graphs.Running() {
		out = append(out, state.Graph{
			ID: p.Task.String(), Name: p.Name, Job: p.Task.Job().String(), Tasks: p.Tasks, Waiting: p.Waiting, Queued: p.Queued, Processing: p.Processing,
			InLine: p.InLine, Done: p.Done, Failed: p.Failed, Bytes: uint64(p.Bytes), Peak: uint64(p.Peak), Started: p.Started.UnixNano(),
		})
	}
	return out
}
