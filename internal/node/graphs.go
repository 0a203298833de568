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

// open prepares the node to run task graphs, below the raylet.
func (g *graphs) open() error {
	g.host = &runshell.Host{
		Capacity: g.capacity, Limit: int64(g.cfg.MemoryLimit), Parent: g.raylet.sup, Heaps: g.monitor.heaped.Load,
	}
	g.system = map[string]*registry.Function{run.Func: g.host.Function()}
	return nil
}

// capacity is what there is for graphs: this node and the others that it knows.
func (g *graphs) capacity() run.Capacity {
	cpus, store := g.chooser.capacity()
	if cpus == 0 {
		cpus, store = g.cfg.CPUs, g.cfg.StoreBytes // alone, or no node has reported yet
	}
	return run.Capacity{Threads: int(max(1, cpus)), Memory: int64(store)}
}

// function finds a function that the node itself runs.
func (g *graphs) function(name string) (*registry.Function, bool) {
	f, ok := g.system[name]
	return f, ok
}

// secede takes what a task says of its place in a graph. A task that is in none needs nothing said.
func (g *graphs) secede(_ context.Context, r state.SecedeRequest) (empty, error) {
	task, ok := ids.TaskOf(r.Task)
	parent, also := ids.TaskOf(r.Parent)
	if !ok || !also {
		return empty{}, errs.New(errs.CodeInvalid, "task and parent have %d and %d bytes, want %d", len(r.Task), len(r.Parent), ids.TaskSize)
	}
	g.host.Secede(parent, task, r.Back)
	return empty{}, nil
}

// running gives the task graphs that run, as lists show them.
func (g *graphs) running() []state.Graph {
	out := []state.Graph{}
	for _, p := range g.host.Running() {
		out = append(out, state.Graph{
			ID: p.Task.String(), Name: p.Name, Job: p.Task.Job().String(), Tasks: p.Tasks, Waiting: p.Waiting, Queued: p.Queued, Processing: p.Processing,
			InLine: p.InLine, Done: p.Done, Failed: p.Failed, Bytes: uint64(p.Bytes), Peak: uint64(p.Peak), Started: p.Started.UnixNano(),
		})
	}
	return out
}
