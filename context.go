package mobula

import (
	"context"

	"mobula/internal/client"
	"mobula/wire"
)

// RuntimeContext says where code runs. Empty strings are what does not apply.
type RuntimeContext struct {
	Node      string // the node's id
	Job       string
	Namespace string
	Task      string // of the driver's own code: its implicit task
	Actor     string // inside an actor
	Function  string // the registered name
	Attempt   int    // of the task, from 1; 0 outside
	Returns   int    // how many results the caller asked for; -1 of a stream
}

// GetRuntimeContext tells where the caller runs, a driver or a task.
func GetRuntimeContext(ctx context.Context) (RuntimeContext, error) {
	tc, err := taskOf(ctx)
	if err != nil {
		return RuntimeContext{}, err
	}
	w := tc.Client.Welcome()
	out := RuntimeContext{Node: w.Node, Namespace: w.Namespace, Job: tc.Task.Job().String(), Task: tc.Task.String(), Attempt: int(tc.Attempt)}
	if s := tc.Spec; s != nil {
		out.Function, out.Returns = s.Opts.Func, int(s.Opts.NumReturns)
		if s.Kind != wire.TaskNormal {
			out.Actor = s.Actor.String()
		}
	}
	return out, nil
}

// InTask tells whether ctx belongs to a task, rather than to a driver's own code or to nothing.
func InTask(ctx context.Context) bool {
	tc := client.FromContext(ctx)
	return tc != nil && tc.Spec != nil
}

// Void is the result of a function that has none but its error.
type Void = struct{}
